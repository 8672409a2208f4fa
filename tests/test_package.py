"""The wheel, installed with the default lock in a clean environment: it has all its files, and does the
real job without a network."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment

from tests.quotes import cited
from tests.test_locks import locked_at

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ROOT = Path(__file__).parent.parent
# where this machine gets packages from
PIP_ENVIRON = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
IS_LONG = "LONG_TESTS" in os.environ


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT), python=sys.executable)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment that holds the wheel and what the default lock names,
    nothing else.

    What it names is linked from here. With `LONG_TESTS` pip fetches what the wheel asks for, in the
    newest versions.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    interpreter = folder / "bin" / "python"
    into = ("--python", str(interpreter), "install", "--prefer-binary", "--no-compile")
    if IS_LONG:
        pip(*into, str(wheel), python=sys.executable)
    else:
        (packages,) = folder.glob("lib/python3*/site-packages")
        for name in locked_at("default", default_environment()):
            link(name, packages)
        pip(*into, "--no-deps", str(wheel), python=sys.executable)
    return interpreter


def link(name, packages):
    """Let the folder of packages have every file of an installed one."""
    for file in metadata.files(name) or []:
        if ".." not in file.parts:
            place = packages / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(str(file.locate()))


def pip(*line, python):
    environ = {
        **PIP_ENVIRON,
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
    }
    done = subprocess.run(
        [python, "-m", "pip", *line],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=ROOT.parent,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def without_network():
    """What a command is put behind, so that it has no network at all; nothing where the system does
    not allow it."""
    prefix = ["unshare", "--net", "--map-root-user"]
    if (
        shutil.which("unshare")
        and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    ):
        return prefix
    return []


def babyagi(*line, python, home):
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home), "BABYAGI_HOME": str(home / "data")}
    command = [*without_network(), str(python.parent / "babyagi"), *line]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=300, cwd=home
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}

    there = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "babyagi").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert inside == there
    for folder, kind in (
        ("guide", "md"),
        ("agents/prompts", "md"),
        ("taskstore/sql", "sql"),
        ("pages", "html"),
    ):
        assert any(re.fullmatch(rf"babyagi/{folder}/\w+\.{kind}", name) for name in inside)


def test_the_installed_wheel_says_what_it_is_and_does_the_real_job_on_its_guide_without_a_network(
    python, wheel, tmp_path
):
    assert (
        babyagi("--version", python=python, home=tmp_path).strip()
        == f"babyagi {wheel.name.split('-')[1]}"
    )
    assert "babyagi demo" in babyagi("--help", python=python, home=tmp_path)
    (guide,) = python.parent.parent.glob("lib/python3*/site-packages/babyagi/guide")
    assert babyagi("guide", "start", python=python, home=tmp_path).strip()

    out = babyagi("demo", python=python, home=tmp_path)

    report = out[out.index("# Report") :]
    assert "REHEARSAL: no language model was asked" in out
    assert len(cited(report, guide)) >= 5
    assert "Stopped: finished" in report
    tasks = json.loads(babyagi("tasks", "--json", python=python, home=tmp_path))
    assert [task["status"] for task in tasks] == ["done"]
