"""Every test starts with a clean environment, may open sockets to this machine only, and starts a
process only where it is marked `system`."""

import gc
import os
import signal
import socket
import sys

import pytest
from hypothesis import HealthCheck, settings

from babyagi.taskstore.postgres import PostgresDatabase
from support.postgres_server import PostgresServer

KEPT = {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE"}


# machines may be slow
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_interrupts():
    """A shell that starts the tests in the background lets them ignore SIGINT, and Python then
    leaves it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def loopback_only():
    connect = socket.socket.connect

    def connect_here(self, address):
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise PermissionError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Twelve thousand tests stay to the end: no collection of garbage need look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    for item in items:
        if "postgres_server" in item.fixturenames:
            item.add_marker(pytest.mark.system)


class ProcessWatch:
    """Fails a test that starts a process without being marked."""

    def __init__(self):
        self.is_on = False
        sys.addaudithook(self._make_hook())

    def _make_hook(self):
        """It is called for each event of the interpreter, tens of thousands in a test."""
        starts = frozenset(("subprocess.Popen", "os.fork", "os.posix_spawn"))

        def see(event, _):
            if event in starts and self.is_on:
                pytest.fail("a test that starts a process is marked `system`")

        return see


PROCESS_WATCH = ProcessWatch()


@pytest.fixture(autouse=True)
def clean_environment_and_processes_where_marked(request):
    """One fixture: each that every test has costs seconds over ten thousand tests."""
    for name in list(os.environ):
        if name not in KEPT and not name.startswith(("PYTEST", "COV")):
            del os.environ[name]
    PROCESS_WATCH.is_on = request.node.get_closest_marker("system") is None
    yield
    PROCESS_WATCH.is_on = False


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server for every test of this process, with an empty store in its database
    `template`. It counts rows, and so plans otherwise, only when a test asks it to."""
    server = PostgresServer("autovacuum=off")
    try:
        server.start()
        server.run("CREATE DATABASE template")
        PostgresDatabase(server.url("template")).close()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a database with an empty store, for one test."""
    return postgres_server.make_database(template="template")
