"""The wheel, installed without extras in a clean environment: it has all its files, and does the
real job without a network."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.quotes import cited

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ROOT = Path(__file__).parent.parent
# where this machine gets packages from
PIP_ENVIRON = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT), python=sys.executable)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment that holds the wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=True)
    interpreter = folder / "bin" / "python"
    pip("install", "--prefer-binary", str(wheel), python=str(interpreter))
    return interpreter


def pip(*line, python):
    environ = {
        **PIP_ENVIRON,
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        [python, "-m", "pip", *line, "--quiet"],
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
    tasks = json.loads(babyagi("tasks", "--json", python=python, home=tmp_path))
    assert len(tasks) >= 8
    assert {task["status"] for task in tasks} == {"done"}
