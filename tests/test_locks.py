"""What is installed: the locks fit `pyproject.toml`, have a hash for everything, and no version
with a known hole is let in. No network."""

import functools
import itertools
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from babyagi.app.backends import MODULES_AND_PACKAGE
from babyagi.settings.fields import declared_fields
from support.advisories import CHANGELOG

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = {
    name: list(map(Requirement, lines)) for name, lines in PROJECT["optional-dependencies"].items()
}
LISTED = json.loads((ROOT / "tests/data/advisories.json").read_text(encoding="utf-8"))
ADVISORIES = LISTED["known"]
LOCKS = ("build", "default", "dev", "image")
NOT_IN_IMAGE = {"dev"}
# What a package asks for and `./check lock` leaves out, because this program never imports it, or
# seldom.
LEFT_OUT = {
    "default": {"kubernetes", "onnxruntime", "tokenizers", "uvicorn"},
    "dev": {"kubernetes"},
    "image": {"kubernetes"},
}
PLACES = [  # where a lock must do: Python, system, machine
    {
        "python_version": python, "python_full_version": f"{python}.3", "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system], "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython", "extra": "",
    }
    for python in ("3.11", "3.12", "3.13", "3.14")
    for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
]  # fmt: skip


@functools.cache
def read_lock(name):
    """Requirement and hashes of each entry of a lock."""
    text = (ROOT / "locks" / f"{name}.txt").read_text(encoding="utf-8")
    logical = re.sub(r"\\\n", " ", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    parts = [line.split(" --hash=") for line in logical if line.strip()]
    return [(Requirement(head), hashes) for head, *hashes in parts]


def locked_at(name, place):
    """Versions by name of what the lock installs in a place."""
    return _locked_at(name, tuple(place.items()))


@functools.cache
def _locked_at(name, place):
    place = dict(place)
    chosen = [one for one, _ in read_lock(name) if one.marker is None or one.marker.evaluate(place)]
    versions = {canonicalize_name(one.name): next(iter(one.specifier)).version for one in chosen}
    assert len(versions) == len(chosen), "a package twice"
    return versions


def wanted_by(lock):
    """What a lock must hold: of the project without extras, with all of them, with all but `dev`,
    or what builds it."""
    if lock == "build":
        return list(map(Requirement, PYPROJECT["build-system"]["requires"]))
    extras = [
        one
        for name, found in EXTRAS.items()
        if lock == "dev" or (lock == "image" and name not in NOT_IN_IMAGE)
        for one in found
    ]
    return [
        *map(Requirement, PROJECT["dependencies"]),
        *(one for one in extras if one.name != PROJECT["name"]),
    ]


def direct():
    return {one.name: one for lock in LOCKS for one in wanted_by(lock)}


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_in_a_lock_has_one_version_and_its_hashes_and_no_address(lock):
    entries = read_lock(lock)

    for one, hashes in entries:
        assert [found.operator for found in one.specifier] == ["=="] and one.url is None, one
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", found) for found in hashes), (
            one
        )
    lines = [
        line.partition("#")[0]
        for line in (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8").splitlines()
    ]
    assert not [line for line in lines if "://" in line or line.startswith("-")]
    assert len(entries) >= len(wanted_by(lock)) > 0


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_the_project_asks_for_in_versions_that_it_takes(lock):
    for place in PLACES:
        versions = locked_at(lock, place)
        for one in wanted_by(lock):
            if one.marker is None or one.marker.evaluate(place):
                assert one.specifier.contains(versions[canonicalize_name(one.name)]), (one, place)


def test_a_lock_holds_all_that_its_packages_ask_for():
    """As far as the metadata of what is installed here tells: a package that is locked in another
    version tells nothing."""
    n_told = 0
    for lock, place in itertools.product(LEFT_OUT, PLACES[:1]):
        versions = locked_at(lock, place)
        for name, version in versions.items():
            try:
                found = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue
            if found.version != version:
                continue
            n_told += 1
            for one in map(Requirement, found.requires or ()):
                wanted = canonicalize_name(one.name)
                if wanted not in LEFT_OUT[lock] and (
                    one.marker is None or one.marker.evaluate(place)
                ):
                    assert one.specifier.contains(versions[wanted], prereleases=True), (
                        f"{name} needs {one}"
                    )
    assert n_told > 100


WITH_THE_DEFAULT_LOCK = """
import asyncio, json, sys, tempfile
from pathlib import Path
left_out = set(json.loads(sys.argv[1]))

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in left_out:
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Nowhere())
from babyagi.index.hashing import HashEmbedder
from babyagi.index.port import IndexItem
from babyagi.index.vendors.chroma import ChromaIndex
from babyagi.runtime.offload import run_inline

async def main():
    index = ChromaIndex(Path(tempfile.mkdtemp()), offload=run_inline)
    vectors = [HashEmbedder().embed_text(f"result {n} of {n * 7919}") for n in range(8)]
    items = [IndexItem(id=str(n), vector=v, text="", task_id=n) for n, v in enumerate(vectors)]
    await index.upsert("results", items)
    found = [(await index.query("results", one, k=1))[0].id for one in vectors]
    await index.close()
    print(*found)

asyncio.run(main())
"""


@pytest.mark.system
def test_chroma_indexes_and_finds_8_of_8_results_with_nothing_but_the_default_lock():
    locked = {PROJECT["name"], *locked_at("default", PLACES[0])}
    left_out = [
        module
        for module, names in metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & locked
    ]
    assert {"onnxruntime", "tokenizers", "uvicorn"} <= set(left_out)

    done = subprocess.run(
        [sys.executable, "-c", WITH_THE_DEFAULT_LOCK, json.dumps(left_out)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.split() == [*"01234567"], done.stderr


def test_the_locks_agree_with_each_other():
    for place in PLACES:
        dev = locked_at("dev", place)
        for lock in ("build", "default", "image"):
            assert locked_at(lock, place).items() <= dev.items()


def test_the_list_of_known_holes_is_of_every_dependency_in_its_locked_version():
    """`./check advisories` renews it."""
    wanted = {
        canonicalize_name(one.name) for one in direct().values() if one not in EXTRAS["dev"]
    } - {canonicalize_name(one.name) for one in wanted_by("build")}

    assert wanted <= LISTED["read"].keys()
    assert {one["package"] for one in ADVISORIES} <= LISTED["read"].keys()
    locked = [locked_at("dev", place) for place in PLACES]
    outdated = {
        name: read["version"]
        for name, read in LISTED["read"].items()
        if read["version"] not in {versions.get(name) for versions in locked}
    }
    assert outdated == {}


def test_the_packages_that_parse_or_answer_are_in_the_list():
    """What reads bytes from outside, or answers requests, beyond the dependencies themselves."""
    assert {
        *"lxml justext htmldate courlan dateparser linkify-it-py charset-normalizer orjson".split(),
        *"h11 h2 httptools httpx urllib3 requests websockets protobuf pydantic".split(),
        *"python-multipart sse-starlette pyjwt authlib cryptography jsonschema jiter".split(),
    } <= LISTED["read"].keys()


@pytest.mark.parametrize("package", sorted({one["package"] for one in ADVISORIES}))
def test_no_version_with_a_known_hole_is_locked_or_let_in(package):
    for advisory in ADVISORIES:
        if advisory["package"] == package:
            _require_closed(advisory, package)


def _require_closed(advisory, package):
    affected = SpecifierSet(advisory["affected"])
    assert advisory["source"].startswith(("https://", f"{CHANGELOG}{package} "))
    locked = {locked_at(lock, place).get(package) for lock in LOCKS for place in PLACES} - {None}
    assert locked, f"{package} is in no lock; its advisories can go"
    if "accepted" in advisory:
        assert len(advisory["accepted"]) > 40  # a reason
        assert all(affected.contains(version) for version in locked), (
            f"{package} has a version without this hole: accept it no more"
        )
        return
    assert not [version for version in locked if affected.contains(version)], advisory["id"]
    if package in direct():
        (floor,) = [
            found.version for found in direct()[package].specifier if found.operator == ">="
        ]
        assert let_in(floor, affected) is False, advisory["id"]


def let_in(floor, affected):
    """Whether a version that is affected comes at or after the floor."""
    (last,) = [found for found in affected if found.operator in ("<", "<=")]
    return Version(floor) < Version(last.version) or (
        last.operator == "<=" and floor == last.version
    )


@pytest.mark.parametrize(
    ("floor", "affected", "is_let_in"),
    [
        ("1.5", ">=1.0.0,<1.5.9", True),
        ("1.5.9", ">=1.0.0,<1.5.9", False),
        ("0.4", ">=1.0.0,<1.5.9", True),
        ("2", "<=2", True),
    ],
)
def test_a_floor_lets_in_what_comes_after_it(floor, affected, is_let_in):
    assert let_in(floor, SpecifierSet(affected)) is is_let_in


def test_every_dependency_has_a_floor():
    without = [
        str(one)
        for one in direct().values()
        if not any(found.operator == ">=" for found in one.specifier)
    ]

    assert without == []


def test_the_image_has_every_extra_that_a_setting_offers():
    declared = declared_fields()
    libraries = {
        MODULES_AND_PACKAGE[store][0][0]
        for store in set(declared["result_store"].choices) - {"auto", "builtin"}
    }
    said = " ".join(f"{one.help} {one.default_text}" for one in declared.values())
    extras = {
        *re.findall(r"extra `(\w+)`", said),
        *({"postgres"} if "postgresql://" in said else ()),
    }
    versions = locked_at("image", PLACES[0])

    assert libraries == {"chromadb", "weaviate", "pinecone"}
    assert extras == set(EXTRAS) - NOT_IN_IMAGE
    for extra in extras:
        assert {canonicalize_name(one.name) for one in EXTRAS[extra]} <= versions.keys()
    # of BABYAGI_EMBEDDING_MODEL=chroma-onnx, and of a task store
    assert {"onnxruntime", "tokenizers", "psycopg-binary"} <= versions.keys()


@pytest.mark.parametrize("file", ["Dockerfile", "check"])
def test_the_image_and_the_ci_install_from_the_locks_alone(file):
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    installs = [
        line
        for line in re.split(r"&&|\n", text)
        if re.search(r"(pip|\[@\]\}\") (install|wheel) ", line) and "uv>=" not in line
    ]

    assert len(installs) >= 2
    for line in installs:
        assert "--no-deps" in line
        assert (
            "--require-hashes" in line or "--no-build-isolation" in line or "--no-index" in line
        ), line
