"""What is there for many machines: compose file, Kubernetes objects and systemd unit are valid, and
name settings that exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from babyagi.cli.exits import ExitCode
from babyagi.settings.fields import declared_fields

DEPLOY = Path(__file__).parent.parent / "deploy"
OF_OTHERS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}


def run(*command, **options):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, **options
    )


def known_settings():
    return {variable for declared in declared_fields().values() for variable in declared.variables}


def compose():
    return yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))


def kubernetes():
    return {
        (found["kind"], found["metadata"]["name"]): found
        for found in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    }


def board_container():
    (container,) = kubernetes()["Deployment", "board"]["spec"]["template"]["spec"]["containers"]
    return container


def worker_container():
    (container,) = kubernetes()["Deployment", "worker"]["spec"]["template"]["spec"]["containers"]
    return container


@pytest.mark.system
def test_the_compose_files_follow_the_compose_specification():
    checked = run(
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        str(DEPLOY / "compose.yml"),
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_kubernetes_objects_follow_the_schema_of_their_kind():
    import kubernetes_validate  # type: ignore[import-untyped]  # it has no types

    for found in kubernetes().values():
        kubernetes_validate.validate(found, "1.30", strict=True)


@pytest.mark.system
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", ["babyagi-worker@.service", "babyagi-serve.service"])
def test_the_unit_verifies(name, tmp_path):
    text = (DEPLOY / name).read_text(encoding="utf-8")
    unit = tmp_path / name
    unit.write_text(text.replace("/opt/babyagi/bin/babyagi", sys.executable), encoding="utf-8")

    verified = run(
        "systemd-analyze", "verify", str(unit), env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}
    )

    assert (verified.returncode, verified.stderr) == (0, "")


def test_every_setting_that_is_named_exists():
    worker = compose()["services"]["worker"]["environment"]
    objects = {entry["name"] for entry in worker_container()["env"]}
    board = set(compose()["services"]["board"]["environment"])
    board |= {entry["name"] for entry in board_container()["env"]}
    unit = {
        name
        for path in DEPLOY.glob("*.service")
        for name in re.findall(r"\b(BABYAGI_[A-Z_]+)=", path.read_text(encoding="utf-8"))
    }

    assert (set(worker) | objects | board | unit) - OF_OTHERS <= known_settings()


def test_no_file_holds_a_password_or_a_key():
    worker = compose()["services"]["worker"]["environment"]

    assert (
        worker["OPENAI_API_KEY"] is None and "${POSTGRES_PASSWORD}" in worker["BABYAGI_TASK_STORE"]
    )
    assert all(
        "valueFrom" in entry
        for entry in worker_container()["env"]
        if entry["name"] in ("OPENAI_API_KEY", "BABYAGI_TASK_STORE")
    )


def test_a_worker_has_no_rights_and_time_to_drain():
    service, pod = (
        compose()["services"]["worker"],
        kubernetes()["Deployment", "worker"]["spec"]["template"]["spec"],
    )

    assert (
        service["read_only"]
        and service["cap_drop"] == ["ALL"]
        and service["stop_grace_period"] == "20s"
    )
    assert (
        pod["securityContext"]["runAsNonRoot"]
        and worker_container()["securityContext"]["readOnlyRootFilesystem"]
    )
    assert pod["terminationGracePeriodSeconds"] >= 15


def test_nothing_ends_a_worker_for_good_while_its_task_store_is_away():
    """Whoever starts while it is away ends with 7, and must be started again; whoever is at work
    waits, and keeps what it paid for."""
    unit = (DEPLOY / "babyagi-worker@.service").read_text(encoding="utf-8")
    final = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)

    assert final is not None and str(int(ExitCode.STORE)) not in final[1].split()
    assert "livenessProbe" not in worker_container()


def test_a_board_is_killed_by_no_outage_and_has_no_token_in_a_file():
    container, service = board_container(), compose()["services"]["board"]
    tokens = [one for one in container["env"] if one["name"] == "BABYAGI_SERVE_TOKEN"]

    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert all("valueFrom" in one for one in tokens) and tokens
    assert service["environment"]["BABYAGI_SERVE_TOKEN"].startswith("${BABYAGI_SERVE_TOKEN:?")
    assert service["ports"] == ["127.0.0.1:8642:8642"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]


def test_both_ways_use_the_same_servers():
    images = {
        service["image"]
        for name, service in compose()["services"].items()
        if name not in ("worker", "board")
    }
    sets = [
        kubernetes()["StatefulSet", name]["spec"]["template"]["spec"]
        for name in ("postgres", "chroma")
    ]

    assert images == {pod["containers"][0]["image"] for pod in sets}
