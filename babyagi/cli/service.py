"""The command `service`: installs a worker or a server as a service of the system (a user unit of
systemd, or an agent of launchd), which starts it at login and restarts it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from babyagi.cli.serve import require_serve
from babyagi.cli.text import Style, echo, warn
from babyagi.errors import SettingsError
from babyagi.files import private

NAME = "babyagi"
LABEL = "babyagi.worker"
ENVIRONMENT_FILE = "service.env"
MARK = "Written by `babyagi service install`; `babyagi service remove` removes it."
ASK_TIMEOUT_S = 30.0
_ESCAPED = str.maketrans({one: f"\\{one}" for one in '\\"$`'})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The service to install.

    Attributes:
        line: the command line; the first word is the absolute path of Python, the last one is
            `worker` or `serve`.
        folder: the working directory of the service.
        home: the directory for its task store, log and environment file.
        environment: variables in addition to those that the system sets.
    """

    line: Sequence[str]
    folder: Path
    home: Path
    environment: Mapping[str, str]

    @property
    def environment_path(self) -> Path:
        return self.home / ENVIRONMENT_FILE


@click.group()
def service() -> None:
    """Let the system keep a worker or a server running.

    The worker or server is installed as a user unit of systemd, or on macOS as an agent of launchd.
    """


@service.command()
@click.option("--print", "is_shown", is_flag=True, help="Show the files, and write nothing.")
@click.option("--no-start", "is_idle", is_flag=True, help="Write the files, and start nothing.")
@click.option("--serve", "is_server", is_flag=True, help="Run `serve` instead of `worker`.")
def install(is_shown: bool, is_idle: bool, is_server: bool) -> None:
    """Install the service, and start it now and at each login.

    The worker runs in this folder, with the settings of this environment. They are stored with
    their keys in a file that only you can read.
    """
    if is_server:
        require_serve()
    plan = make_plan("serve" if is_server else "worker")
    manager = _find_manager()
    if is_shown:
        echo(manager.render(plan).rstrip("\n"))
        return
    _require_ours(manager)
    private.make_folder(plan.home)
    private.write_file(plan.environment_path, render_environment(plan.environment))
    manager.path.parent.mkdir(parents=True, exist_ok=True)
    # launchd's file contains the environment itself
    private.write_file(manager.path, manager.render(plan))
    echo(f"{manager.path} is written.")
    if is_idle:
        echo(f"Start it:  {' && '.join(' '.join(line) for line in manager.starting)}")
        return
    _do(manager.starting)
    echo(manager.hint)


@service.command()
def status() -> int:
    """Say whether the service is installed, and whether it runs."""
    manager = _find_manager()
    if not manager.path.exists():
        echo("The service is not installed. Type: babyagi service install")
        return 0
    whose = "" if is_ours(manager.path) else "; this program did not write it"
    echo(f"{manager.path} is installed{whose}.")
    code, state = _call(manager.asking)
    echo(f"State: {state if state and code is not None else 'unknown'}")
    echo(f"Log:   {manager.log}")
    return 0


@service.command()
def remove() -> None:
    """Stop the service, and remove its files."""
    manager = _find_manager()
    if not manager.path.exists():
        echo("The service is not installed.")
        return
    _require_ours(manager)
    _do(manager.stopping)
    manager.path.unlink()
    (_home() / ENVIRONMENT_FILE).unlink(missing_ok=True)
    _do(manager.forgetting)
    echo(f"{manager.path} is removed.")


# -- the files of the service
# --------------------------------------------------------------------------------------------------


def make_plan(command: str) -> Plan:
    """Return the service that runs `babyagi COMMAND` in the current folder, with the settings of
    the current environment."""
    from babyagi.settings.fields import declared_fields

    home = _home()
    variables = {variable for entry in declared_fields().values() for variable in entry.variables}
    found = {
        name: value
        for name, value in os.environ.items()
        if name in variables and value and "\n" not in value and "\r" not in value
    }
    environment = {"PATH": os.environ.get("PATH", ""), **found, "BABYAGI_HOME": str(home)}
    line = (sys.executable, "-P", "-m", "babyagi", command)
    return Plan(line=line, folder=Path.cwd(), home=home, environment=environment)


def _home() -> Path:
    from babyagi.cli.session import NOTHING, load

    return load(needs=NOTHING).settings.home.absolute()


def render_environment(environment: Mapping[str, str]) -> str:
    r"""Return the environment file in systemd's syntax: a line `NAME="value"` for each variable,
    with `$`, `"`, `\` and the backtick escaped."""
    lines = [f'{name}="{value.translate(_ESCAPED)}"' for name, value in sorted(environment.items())]
    return "\n".join([f"# {MARK}", *lines, ""])


def render_unit(plan: Plan) -> str:
    """Return the content of systemd's unit file for the service."""
    line = " ".join(_quote_for_unit(word) for word in plan.line)
    return f"""# {MARK}
[Unit]
Description=babyagi {_percent(plan.line[-1])}
After=network-online.target

[Service]
Type=exec
WorkingDirectory={_percent(str(plan.folder))}
EnvironmentFile={_percent(str(plan.environment_path))}
ExecStart={line}
# 143: it was told to stop, and drained; 2, 4, 8: an error that only a person can mend
SuccessExitStatus=143
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2 4 8
KillMode=mixed
TimeoutStopSec=20
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _quote_for_unit(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_percent(escaped)}"'


def render_agent(plan: Plan) -> str:
    """Return the content of launchd's property list for the service."""
    import plistlib

    content = {
        "Label": LABEL,
        "Comment": MARK,
        "ProgramArguments": list(plan.line),
        "WorkingDirectory": str(plan.folder),
        "EnvironmentVariables": dict(plan.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "StandardErrorPath": str(plan.home / "worker.log"),
        "Umask": 0o077,
    }
    return plistlib.dumps(content, sort_keys=False).decode()


def is_ours(path: Path) -> bool:
    """Return whether `babyagi service install` wrote the file."""
    return MARK in path.read_text(encoding="utf-8", errors="replace")


# -- the system's service managers
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manager:
    """The service manager of this system (systemd or launchd): the file that it reads, and the
    command lines to start, stop, unregister and query the service."""

    path: Path
    render: Callable[[Plan], str]
    starting: Sequence[Sequence[str]]
    stopping: Sequence[Sequence[str]]
    forgetting: Sequence[Sequence[str]]
    asking: Sequence[str]
    log: str
    hint: str


def _find_manager() -> _Manager:
    if sys.platform == "darwin":
        domain = f"gui/{os.getuid()}"
        path = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return _Manager(
            path=path,
            render=render_agent,
            starting=[["launchctl", "bootstrap", domain, str(path)]],
            stopping=[["launchctl", "bootout", f"{domain}/{LABEL}"]],
            forgetting=(),
            asking=["launchctl", "print", f"{domain}/{LABEL}"],
            log="worker.log in BABYAGI_HOME",
            hint="It runs while you are logged in.",
        )
    configured = os.environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    unit = f"{NAME}.service"
    user = ["systemctl", "--user"]
    return _Manager(
        path=folder / "systemd" / "user" / unit,
        render=render_unit,
        starting=[[*user, "daemon-reload"], [*user, "enable", "--now", unit]],
        stopping=[[*user, "disable", "--now", unit]],
        forgetting=[[*user, "daemon-reload"]],
        asking=[*user, "is-active", unit],
        log=f"journalctl --user --unit {NAME}",
        hint="It runs while you are logged in; loginctl enable-linger lets it run without that.",
    )


def _require_ours(manager: _Manager) -> None:
    if manager.path.exists() and not is_ours(manager.path):
        raise SettingsError(
            f"{manager.path} exists; this program did not write it",
            why="another program may need the file",
            fix="move the file away, then type the same again",
            guide="schedules",
        )


def _do(lines: Sequence[Sequence[str]]) -> None:
    """Run the commands one after the other. For each command that fails, print a warning."""
    for line in lines:
        code, said = _call(line)
        if code != 0:
            why = said or f"it ended with {code}"
            warn(f"note: {' '.join(line)} failed: {why}", Style.YELLOW)


def _call(line: Sequence[str]) -> tuple[int | None, str]:
    """Run the command. Return its exit code and the first line of its output, or None and the
    reason if it could not be run or took too long."""
    import subprocess

    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    said = (done.stdout if done.returncode == 0 else done.stderr or done.stdout).strip()
    return done.returncode, (said.splitlines() or [""])[0].strip()
