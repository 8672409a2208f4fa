import asyncio
import re
import socket
import sqlite3
import sys
import threading
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from babyagi import taskstore
from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    NotFoundError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.redaction import redact_url
from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.tasks import Duty, ObjectiveStatus, Proposal, TaskStatus
from babyagi.taskstore import postgres
from babyagi.taskstore.nouns import Intention, Kept, Outcome, Planned
from babyagi.taskstore.postgres import PostgresDatabase
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import PAUSE_S
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from support.postgres_server import PASSWORD, PostgresServer
from support.workers import join
from tests.taskstore.contract import (
    CALL,
    SPENT,
    Clock,
    TaskStoreContract,
    begin,
    finish_one,
    make_spec,
    make_worker,
)
from tests.taskstore.old_home import (
    VERSION,
    check_nothing_lost,
    load_described,
    statements_of,
    unpack,
)
from tests.taskstore.races import do_each_task_once

# Every row but the schema's version, in any order, and the ids begin at 1 again. That takes a
# hundredth of the time of a new database.
EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE name regclass;
BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'babyagi'::regnamespace
            AND relkind = 'r' AND relname <> 'meta' LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
    PERFORM setval(oid::regclass, 1, FALSE) FROM pg_class
        WHERE relnamespace = 'babyagi'::regnamespace AND relkind = 'S';
END $$
"""


@pytest.fixture(scope="session")
def shared_url(postgres_server):
    """The URL of a database that tests use one after another."""
    return postgres_server.make_database(template="template")


class TestPostgresTaskStore(TaskStoreContract):
    @pytest.fixture(autouse=True)
    def database(self, postgres_server, shared_url):
        self.url = shared_url
        yield
        postgres_server.run(EMPTY, database=name_of(shared_url))

    async def open_store(self, clock, tmp_path):
        offload = ThreadOffload(n_threads=3)
        return await open_postgres(self.url, clock=clock, offload=offload), offload.close


@pytest.fixture
async def store(postgres_url):
    store = await open_postgres(postgres_url, offload=run_inline)
    yield store
    await store.close()


@pytest.fixture
def empty_url(postgres_server):
    """The URL of a database with nothing in it."""
    return postgres_server.make_database()


def name_of(url):
    """The name of the URL's database."""
    return url.rpartition("/")[2]


def cut_connections(server, url):
    """End every connection to the database, as an administrator can."""
    name = name_of(url)
    server.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
        f"'{name}' AND pid <> pg_backend_pid()"
    )


# -- the schema
# --------------------------------------------------------------------------------------------------


async def test_both_schemas_have_the_same_tables_columns_and_indexes(store, tmp_path):
    sqlite = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=run_inline)
    connection: Any = sqlite3.connect(tmp_path / "tasks.db")
    connection.row_factory = sqlite3.Row
    ours, theirs = {}, defaultdict(list)
    tables = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "AND name NOT LIKE 'result_words%'"
    )
    names = [row["name"] for row in connection.execute(tables)]  # the words are an index there
    for name in names:
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        ours[name] = [
            (
                column["name"],
                bool(column["notnull"] or column["pk"]),
                _default(column["dflt_value"]),
            )
            for column in columns
        ]
    query = (
        "SELECT table_name, column_name, is_nullable = 'NO' AS is_required, "
        "column_default FROM information_schema.columns "
        "WHERE table_schema = 'babyagi' ORDER BY table_name, ordinal_position"
    )
    for row in named_rows(store, query):
        theirs[row["table_name"]].append(
            (row["column_name"], row["is_required"], _default(row["column_default"]))
        )
    assert theirs == ours
    in_file = {
        row["name"]
        for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        )
    }
    rows = named_rows(store, "SELECT indexname FROM pg_indexes WHERE schemaname = 'babyagi'")
    assert in_file | {"result_words"} <= {row["indexname"] for row in rows}
    connection.close()
    await sqlite.close()


def named_rows(store, sql):
    connection = store._database._connections.of_this_thread()
    return connection.cursor(row_factory=dict_row).execute(sql, prepare=False)


def _default(text):
    return text.partition("::")[0] if text else None


async def test_full_text_is_looked_up_in_its_index_however_many_results_an_objective_has(store):
    connection, objective_id = store._database._connections.of_this_thread(), await begin(store)
    numbers = f"SELECT {objective_id}, n, {{}} FROM generate_series(2, 3000) AS n"
    task = "objective_id, id, name, name_key, status, rank, origins, created_at_us"
    connection.execute(
        f"INSERT INTO task ({task}) " + numbers.format("n::text, n::text, 'done', n, '[]', n")
    )
    text = (
        "'lake ' || (SELECT string_agg('w' || (n * 61 + m) % 997, ' ') FROM "
        "generate_series(1, 60) AS m)"
    )
    result = "objective_id, task_id, text, origins, created_at_us, checksum"
    connection.execute(f"INSERT INTO result ({result}) " + numbers.format(text + ", '[]', n, ''"))

    given = ["objective_id", "words", "limit"]
    for query, types in (
        ("word_counts", "smallint, text, smallint"),
        ("results_with_words", "smallint, text"),
    ):
        sql = re.sub(
            r"%\((\w+)\)s",
            lambda name: f"${given.index(name[1]) + 1}",
            postgres.load_queries()[query],
        )
        connection.execute(f"PREPARE {query} ({types}) AS {sql}")
        values = ", ".join([str(objective_id), "'[]'", "101"][: types.count(",") + 1])
        plan = "\n".join(
            line for (line,) in connection.execute(f"EXPLAIN EXECUTE {query} ({values})")
        )
        assert (
            "Bitmap Index Scan on result_words" in plan
            and "Scan using" not in plan
            and "Seq Scan" not in plan
        ), plan


def test_two_who_open_an_empty_database_at_once_make_one_schema(empty_url):
    faults, barrier = [], threading.Barrier(6)

    def open_at_once():
        barrier.wait(120)
        try:
            PostgresDatabase(empty_url).close()
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=open_at_once) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert faults == []


def test_an_empty_database_gets_its_schema_whole_or_not_at_all(empty_url):
    broken = replace(SCRIPTS, create=f"{SCRIPTS.create}\nSELECT 1 / 0;")

    with pytest.raises((BabyagiError, psycopg.Error)):
        PostgresDatabase(empty_url, scripts=broken)

    with psycopg.connect(empty_url) as connection:
        assert connection.execute(
            "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'babyagi'"
        ).fetchone() == (0,)


def test_somebody_elses_tables_are_left_alone(empty_url, postgres_server):
    name = name_of(empty_url)
    postgres_server.run("CREATE TABLE task (id TEXT)", database=name)
    PostgresDatabase(empty_url).close()  # a schema of its own: their table stays theirs
    assert postgres_server.run("SELECT count(*) FROM public.task", database=name) == [(0,)]
    postgres_server.run("DROP SCHEMA babyagi CASCADE", database=name)
    postgres_server.run("CREATE SCHEMA babyagi CREATE TABLE songs (title TEXT)", database=name)
    with pytest.raises(StoreUnusableError, match="not a task store"):
        PostgresDatabase(empty_url)


def test_a_database_that_cannot_hold_every_text_is_unusable(postgres_server):
    postgres_server.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreUnusableError) as caught:
        PostgresDatabase(postgres_server.url("latin"))
    assert "UTF8" in caught.value.fix
    postgres_server.run("DROP DATABASE latin")


# -- only looking
# --------------------------------------------------------------------------------------------------


async def test_an_older_store_is_looked_at_beside_its_worker_and_stays_as_it_is(old_url):
    older = PostgresDatabase(old_url, scripts=replace(SCRIPTS, version=VERSION))
    worked_on = TaskStore(older, offload=run_inline, tell=lambda _: None)
    objective_id = await begin(worked_on, "Sing")

    looker = await open_postgres(old_url, offload=run_inline, only_looks=True)

    assert "Sing" in [task.name for task in await looker.tasks(objective_id)]
    with pytest.raises(StoreUnavailableError, match="cannot answer"):
        await looker.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    query = "SELECT value FROM babyagi.meta WHERE key = 'schema_version'"
    with connect(old_url) as connection:
        assert connection.execute(query).fetchone() == (str(VERSION),)
    await looker.close()
    await worked_on.close()


async def test_in_an_empty_database_nothing_is_created_by_looking(empty_url):
    with pytest.raises(NotFoundError, match="no objective yet"):
        await open_postgres(empty_url, offload=run_inline, only_looks=True)
    with connect(empty_url) as connection:
        query = "SELECT count(*) FROM pg_namespace WHERE nspname = 'babyagi'"
        assert connection.execute(query).fetchone() == (0,)


# -- an upgrade
# --------------------------------------------------------------------------------------------------

SCRIPTS = database.load_scripts("postgres")
UPGRADE = statements_of(SCRIPTS.upgrade, is_whole=lambda text: text.count("$$") % 2 == 0)
NEWER = replace(
    SCRIPTS,
    version=SCRIPTS.version + 1,
    upgrade=f"UPDATE meta SET value = '{SCRIPTS.version + 1}' WHERE key = 'schema_version';",
)
DESCRIBED = load_described("postgres")
UPGRADED = (VERSION, SCRIPTS.version)


@pytest.fixture
def old_url(empty_url):
    """The URL of a store of the version before that nobody works on any more."""
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(unpack("postgres.sql"))
    return empty_url


def migrate(url, *, scripts=None):
    with closing(PostgresDatabase(url, scripts=scripts, migrates=True)) as opened:
        return opened.version_before, opened.known_version


def connect(url):
    return psycopg.connect(url, options="-c search_path=babyagi")


def dump(url):
    """Every row and every name in the schema."""
    with connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'babyagi'"
        ).fetchall()
        named = connection.execute(
            "SELECT table_name, concat_ws(' ', column_name, data_type, is_nullable, column_default) "
            "FROM information_schema.columns WHERE "
            "table_schema = 'babyagi'"
            " UNION SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'babyagi'"
            " UNION SELECT conrelid::regclass::TEXT, pg_get_constraintdef(oid) FROM pg_constraint"
            " UNION SELECT tgrelid::regclass::TEXT, pg_get_triggerdef(oid) FROM "
            "pg_trigger WHERE NOT tgisinternal"
            " UNION SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE "
            "pronamespace = 'babyagi'::regnamespace"
        ).fetchall()
        return sorted(named), {
            table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}")))
            for (table,) in tables
        }


async def test_a_store_of_the_version_before_is_refused_until_somebody_migrates_it(old_url):
    before = dump(old_url)
    with pytest.raises(StoreUnusableError, match="older babyagi") as caught:
        PostgresDatabase(old_url)
    assert "babyagi store migrate" in caught.value.fix
    assert dump(old_url) == before
    assert migrate(old_url) == UPGRADED
    assert migrate(old_url) == (SCRIPTS.version, SCRIPTS.version)
    store = await open_postgres(old_url, offload=run_inline)
    await check_nothing_lost(store, DESCRIBED)
    await store.close()


@pytest.mark.parametrize("version", [1, VERSION - 1])
async def test_every_other_older_store_is_refused_with_the_version_that_upgrades_it(
    version, old_url
):
    with connect(old_url) as connection:
        connection.execute(
            "UPDATE meta SET value = %s WHERE key = 'schema_version'", [str(version)]
        )
    before = dump(old_url)
    looking = partial(PostgresDatabase, only_looks=True)
    for open_it in (PostgresDatabase, looking, migrate):
        with pytest.raises(StoreUnusableError, match="older babyagi") as caught:
            open_it(old_url)
        assert f"git checkout {database.UPGRADER}" in caught.value.fix
    assert dump(old_url) == before


async def test_an_upgraded_store_has_the_same_schema_as_a_new_one(old_url, postgres_url):
    migrate(old_url)
    assert dump(old_url)[0] == dump(postgres_url)[0]


async def test_a_newer_schema_is_refused_and_ends_the_claiming_of_a_living_worker(
    store, postgres_url
):
    objective_id = await begin(store)
    await store.remove_worker("w")
    assert migrate(postgres_url, scripts=NEWER) == (SCRIPTS.version, NEWER.version)
    with pytest.raises(StoreUnusableError, match="newer babyagi"):
        PostgresDatabase(postgres_url)
    await join(store, make_worker("w"), objective_id)
    with pytest.raises(StoreUnusableError) as caught:
        await store.claim_task(objective_id, "w")
    assert f"version {NEWER.version}" in caught.value.why


async def test_no_upgrade_runs_under_a_living_worker(old_url):
    with connect(old_url) as connection:
        connection.execute(
            "UPDATE worker SET lease_us = 600000000, lease_until_us = extract(epoch FROM "
            "clock_timestamp()) * 1000000 + 60000000"
        )
    before = dump(old_url)
    with pytest.raises(StoreUnusableError, match="cannot be upgraded now"):
        migrate(old_url)
    assert dump(old_url) == before
    with connect(old_url) as connection:
        connection.execute("DELETE FROM worker")
    assert migrate(old_url) == UPGRADED


@pytest.mark.parametrize(
    "fault",
    ["SELECT 1 / 0;", "SELECT pg_terminate_backend(pg_backend_pid());"],
    ids=["fails", "dies"],
)
async def test_an_upgrade_that_breaks_anywhere_leaves_the_old_schema_whole(fault, old_url):
    before = dump(old_url)
    for at in range(len(UPGRADE) + 1):
        broken = "".join([*UPGRADE[:at], fault, *UPGRADE[at:]])
        with pytest.raises((psycopg.Error, BabyagiError)):
            migrate(old_url, scripts=replace(SCRIPTS, upgrade=broken))
        assert dump(old_url) == before, at
    assert migrate(old_url) == UPGRADED
    store = await open_postgres(old_url, offload=run_inline)
    await check_nothing_lost(store, DESCRIBED)
    await store.close()


# -- what a person mends
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["password", "user", "database", "rights"])
def test_an_error_that_a_person_must_mend_is_shown_without_the_password(case, postgres_server):
    urls = {
        "password": postgres_server.url("template", password="wrong-secret"),
        "user": postgres_server.url("template", user="nobody-known"),
        "database": postgres_server.url("no_such_database"),
        "rights": postgres_server.url("template1", user="guest"),
    }
    if case == "rights":
        postgres_server.run("DROP ROLE IF EXISTS guest")
        postgres_server.run(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    with pytest.raises(StoreUnusableError) as caught:
        PostgresDatabase(urls[case])
    shown = "\n".join(
        [
            repr(caught.value),
            caught.value.what,
            caught.value.why,
            caught.value.fix,
            *all_causes(caught.value),
        ]
    )
    assert ":***@127.0.0.1" in shown
    assert PASSWORD not in shown
    assert "wrong-secret" not in shown


def all_causes(error):
    while error is not None:
        yield str(error)
        error = error.__cause__


def test_a_server_that_is_not_there_is_passing():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(StoreUnavailableError) as caught:
            PostgresDatabase(f"postgresql://me:{PASSWORD}@127.0.0.1:{nobody.getsockname()[1]}/db")
    assert PASSWORD not in caught.value.what + caught.value.why


def test_a_url_that_cannot_be_read_is_a_wrong_setting():
    with pytest.raises(SettingsError) as caught:
        PostgresDatabase(f"postgresql://me:{PASSWORD}@127.0.0.1/db?no_such_option=1")
    assert PASSWORD not in caught.value.what + caught.value.why


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p%40ss@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        (
            "postgres://u:p@a:b@h1:1,h2:2/db?sslmode=require",
            "postgres://u:***@h1:1,h2:2/db?sslmode=require",
        ),
        (
            "postgresql://h/db?user=u&password=p&sslpassword=q#p",
            "postgresql://h/db?user=u&password=***&sslpassword=***",
        ),
        ("postgresql://u:p@[::1", "postgresql://***"),
    ],
)
def test_a_masked_url_shows_everything_but_the_secret(url, shown):
    assert redact_url(url) == shown


async def test_a_missing_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "babyagi.taskstore.postgres")
    monkeypatch.delattr(taskstore, "postgres")
    with pytest.raises(SettingsError) as caught:
        await open_postgres("postgresql://u:secret@127.0.0.1/db", offload=run_inline)
    assert caught.value.fix == "pip install 'psycopg[binary]>=3.3.9'"


def test_every_error_of_the_driver_is_ours_to_say_or_a_programmers():
    named = {
        name: error
        for name, error in vars(psycopg.errors).items()
        if isinstance(error, type) and not name.startswith("_")
    }
    codes = {error for error in named.values() if issubclass(error, psycopg.Error)}
    classes = {error.sqlstate[:2] for error in codes if error.sqlstate}
    known = postgres.PASSING | postgres.LASTING | postgres.OURS
    assert classes == known
    assert len(known) == len(postgres.PASSING) + len(postgres.LASTING) + len(postgres.OURS)
    assert {error.__name__ for error in codes if not error.sqlstate} == {
        *(
            "Error",
            "InterfaceError",
            "DatabaseError",
            "DataError",
            "OperationalError",
            "IntegrityError",
            "InternalError",
        ),
        *(
            "ProgrammingError",
            "NotSupportedError",
            "ConnectionTimeout",
            "CancellationTimeout",
            "PipelineAborted",
        ),
    }


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (psycopg.errors.AdminShutdown(), StoreUnavailableError),
        (psycopg.errors.DiskFull(), StoreUnavailableError),
        (psycopg.errors.LockNotAvailable(), StoreUnavailableError),
        (psycopg.errors.ReadOnlySqlTransaction(), StoreUnavailableError),
        (psycopg.errors.ConnectionTimeout(), StoreUnavailableError),
        (psycopg.errors.InsufficientPrivilege(), StoreUnusableError),
        (psycopg.errors.UndefinedTable(), StoreUnusableError),
        (psycopg.errors.DataCorrupted(), StoreUnusableError),
        (psycopg.errors.SyntaxError(), None),
        (psycopg.errors.CheckViolation(), None),
        (psycopg.DataError("NUL"), None),
    ],
)
def test_who_mends_what(error, ours):
    assert type(postgres.translate(error, "postgresql://h/db")) is (ours or type(None))


# -- a server that goes away
# --------------------------------------------------------------------------------------------------


async def test_a_cut_connection_in_any_place_of_a_verb_changes_nothing_and_the_verb_is_done_once(
    store, postgres_server, postgres_url
):
    objective_id = await begin(store, *[f"Task {number}" for number in range(20)])
    database, cuts = store._database, 0
    for at in range(1, 12):

        def work(tx, at=at):
            for number in range(at):
                nonlocal cuts
                if number == at - 1 and cuts < at:
                    cuts += 1
                    cut_connections(postgres_server, postgres_url)
                tx.run("set_rank", objective_id=objective_id, task_id=number + 1, rank=1000 + at)
            tx.run("bump_order", objective_id=objective_id)

        database.write(work, objective_id=objective_id)
    assert cuts == 11
    assert (await store.objective(objective_id)).order_revision == 11


async def test_a_commit_whose_answer_is_lost_is_known_to_be_done(postgres_server, postgres_url):
    proxy = Proxy(postgres_server.port)
    store = await open_postgres(
        postgres_url.replace(str(postgres_server.port), str(proxy.port)), offload=run_inline
    )
    objective_id = await begin(store)

    def work(tx):
        tx.run("bump_order", objective_id=objective_id)
        proxy.lose_next_answer()

    store._database.write(work, objective_id=objective_id)
    assert proxy.n_lost == 1
    assert (await store.objective(objective_id)).order_revision == 1
    await store.close()
    proxy.close()


async def test_a_server_that_takes_every_byte_and_answers_none_is_not_waited_for_for_ever(
    postgres_server, postgres_url, monkeypatch
):
    monkeypatch.setattr(postgres, "ANSWER_S", 0.3)
    monkeypatch.setitem(postgres.CONNECTING, "connect_timeout", 2)
    proxy = Proxy(postgres_server.port)
    store = await open_postgres(
        postgres_url.replace(str(postgres_server.port), str(proxy.port)), offload=run_inline
    )
    objective_id = await begin(store)
    proxy.is_mute = True
    with pytest.raises(StoreUnavailableError):
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    proxy.is_mute = False
    assert (
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    ).status == "paused"
    await store.close()
    proxy.close()


class Proxy:
    """Stands before the server, and can swallow every answer, or one answer together with the
    connection."""

    def __init__(self, port):
        self._server = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port, self.n_lost, self._loses, self.is_mute = (
            self._listening.getsockname()[1],
            0,
            False,
            False,
        )
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_answer(self):
        self._loses = True

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target, is_answer):
        with suppress(OSError):
            while content := source.recv(65536):
                if is_answer and self._loses:
                    self._loses, self.n_lost = False, self.n_lost + 1
                    break
                if not (is_answer and self.is_mute):
                    target.sendall(content)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.mark.system
async def test_a_server_that_is_stopped_is_unavailable_and_work_goes_on_when_it_is_back():
    server = PostgresServer("fsync=on")
    said: list[str] = []
    try:
        server.start()
        offload = ThreadOffload(n_threads=2)
        store = await open_postgres(server.url(), offload=offload, tell=said.append)
        objective_id = await begin(store, "B")
        await finish_one(store, objective_id)
        await store.wait_for_change(timeout_s=5)
        server.stop()
        with pytest.raises(StoreUnavailableError):
            await store.claim_task(objective_id, "w")
        with pytest.raises(StoreUnavailableError):
            await store.standing(objective_id)
        await store.wait_for_change(timeout_s=0.1)
        server.start()
        claim = await store.claim_task(objective_id, "w")
        assert claim is not None
        assert claim.task.id == 2
        assert len(said) == 1
        assert PASSWORD not in said[0]
        server.stop("immediate")
        server.start()
        assert ((await store.standing(objective_id)).counts)[TaskStatus.DONE] == 1
        await store.close()
        offload.close()
    finally:
        server.close()


async def test_a_lock_that_another_keeps_is_waited_for_and_not_for_ever(store, postgres_url):
    objective_id = await begin(store)
    store._database._connections.of_this_thread().execute("SET lock_timeout = '50ms'")
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM babyagi.objective FOR UPDATE")
        with pytest.raises(StoreUnavailableError, match="cannot answer now"):
            await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    assert (
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    ).status == "paused"


async def test_what_the_server_rolled_back_is_tried_again_and_not_for_ever(store):
    objective_id, tries = await begin(store), []

    def conflict(tx):
        tries.append(tx.run("bump_order", objective_id=objective_id))
        if len(tries) < 3:
            raise psycopg.errors.DeadlockDetected

    store._database.write(conflict, objective_id=objective_id)
    assert (await store.objective(objective_id)).order_revision == 1

    def always(tx):
        tries.append(0)
        raise psycopg.errors.SerializationFailure

    with pytest.raises(StoreUnavailableError):
        store._database.write(always, objective_id=objective_id)
    assert tries == [1, 1, 1, *[0] * postgres.TRIES]


# -- several at once
# --------------------------------------------------------------------------------------------------


@pytest.mark.system
async def test_three_processes_one_of_them_killed_do_each_task_exactly_once(postgres_url):
    await do_each_task_once(postgres_url)


async def test_threads_of_one_store_race_for_claims_while_the_list_is_ordered_and_workers_come_and_go(
    postgres_url,
):
    offload = ThreadOffload(n_threads=4)
    store = await open_postgres(postgres_url, offload=offload)
    one, other = (
        await begin(store, *[f"Task {n}" for n in range(40)]),
        await begin(store, *[f"Task {n}" for n in range(40)]),
    )
    claimed = []

    async def work(objective_id, worker_id):
        await join(store, make_worker(worker_id), objective_id, lease_s=60)
        while (claim := await store.claim_task(objective_id, worker_id)) is not None:
            claimed.append((objective_id, claim.task.id))
            await store.intend_step(
                claim.fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            )
            await store.record_step(claim.fence, Outcome(key="k", output="1", usage=SPENT))
            await store.record_result(claim, text="r", origins=[])
            planner = await store.claim_duty(objective_id, worker_id, Duty.PLAN)
            if planner is not None:
                await store.record_plan(
                    planner,
                    task_ids=[
                        task.id
                        for task in await store.tasks(
                            objective_id, statuses=[TaskStatus.RECORDED], limit=9
                        )
                    ],
                    plan=Planned(),
                )
            await store.renew_lease(worker_id, lease_s=60)

    async def disturb():
        for number in range(15):
            await join(store, make_worker("v"), (one, other)[number % 2], lease_s=60)
            with suppress(SettingsError):
                await store.move_task(one, 40, to=1 + number)
            await store.reap_workers(silent={}, gone=["v"])

    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        group.create_task(disturb())
        for number in range(8):
            group.create_task(work((one, other)[number % 2], f"w{number}"))
    assert sorted(claimed) == [
        (objective_id, task_id) for objective_id in (one, other) for task_id in range(1, 42)
    ]
    for objective_id in (one, other):
        assert (await store.objective(objective_id)).usage.calls == 41
        assert len(await store.results(objective_id)) == 41
        done = [
            event.task_id
            for event in await store.events(objective_id)
            if event.kind == "task.done" and event.task_id
        ]
        assert sorted(
            done
            + [
                task.id
                for task in await store.tasks(
                    objective_id, statuses=[TaskStatus.RECORDED], limit=50
                )
            ]
        ) == list(range(1, 42))
    await store.close()
    offload.close()


async def test_the_same_objective_started_by_many_at_once_is_one(postgres_url):
    offload = ThreadOffload(n_threads=4)
    store = await open_postgres(postgres_url, offload=offload)
    created = await asyncio.gather(
        *[store.create_objective(make_spec(), uid=f"u{number}") for number in range(8)]
    )
    assert len({objective.id for objective, _ in created}) == 1
    assert sum(is_new for _, is_new in created) == 1
    await store.close()
    offload.close()


# -- hearing of it
# --------------------------------------------------------------------------------------------------


@pytest.fixture
async def listening(postgres_url):
    offload = ThreadOffload()
    store = await open_postgres(postgres_url, offload=offload)
    yield store
    await store.close()
    offload.close()


@pytest.fixture
async def other(postgres_url):
    other = await open_postgres(postgres_url, offload=run_inline)
    yield other
    await other.close()


async def test_a_commit_of_another_store_ends_the_wait_for_a_change_and_ones_own_do_not(
    listening, other
):
    objective_id = await begin(listening)
    await listening.wait_for_change(timeout_s=3600)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        wait = group.create_task(listening.wait_for_change(timeout_s=3600))
        await listening.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        await asyncio.sleep(3 * PAUSE_S)
        assert not wait.done()
        await other.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
    last = await listening.last_event_id(objective_id)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(listening.wait_for_events(objective_id, after_id=last, timeout_s=3600))
        await asyncio.sleep(0)
        await other.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)


async def test_a_waiter_is_woken_by_every_commit(listening, other):
    objective_id = await begin(other)
    await listening.wait_for_change(timeout_s=3600)
    async with asyncio.timeout(120):
        for _ in range(10):
            waiting = asyncio.create_task(listening.wait_for_change(timeout_s=3600))
            await asyncio.sleep(PAUSE_S * 0.7)
            await other.append_event(objective_id, kind="said", data={})
            await waiting


async def test_a_listener_that_was_cut_off_hears_again(
    listening, other, postgres_server, postgres_url, monkeypatch
):
    monkeypatch.setattr(postgres, "RECONNECT_PAUSE_S", 0.05)
    objective_id = await begin(other)
    await listening.wait_for_change(timeout_s=3600)
    cut_connections(postgres_server, postgres_url)
    async with asyncio.timeout(120):
        await listening.wait_for_change(timeout_s=3600)  # nobody knows what was missed
        async with asyncio.TaskGroup() as group:
            group.create_task(listening.wait_for_change(timeout_s=3600))
            await other.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)


async def test_a_zombie_on_another_connection_records_nothing(store, other):
    objective_id = await begin(store)
    claim = await store.claim_task(objective_id, "w")
    await other.remove_worker("w")
    with pytest.raises(LeaseLostError):
        await store.record_result(claim, text="late", origins=[])
    assert await other.results(objective_id) == []


# -- size
# --------------------------------------------------------------------------------------------------

LOOKED_UP = (
    "best_queued tally blocked_lacking blockers task_names "
    "queue_head last_finished objective task step"
    " counts standing events"
).split()


async def test_each_question_of_a_turn_is_answered_by_an_index_though_nobody_has_counted_the_rows(
    store,
):
    await add_a_long_list(store)
    for query in LOOKED_UP:
        plan = plan_of(store, query)
        assert "Index" in plan, plan
        assert not [
            word for word in ("Seq Scan", "Sort", "Hash Join", "Merge Join") if word in plan
        ], (query, plan)
    assert "task_ready" in plan_of(store, "best_queued")
    assert "task_status" in plan_of(store, "tasks_page")
    assert [
        index
        for index in ("task_name", "task_pkey", "Seq Scan")
        if index in plan_of(store, "alike")
    ] == ["task_name", "task_pkey"], plan_of(store, "alike")
    for query in ("ranks", "some_tasks"):
        assert re.search(r"task_pkey.*\n.*id = ", plan_of(store, query))


async def test_each_question_of_a_turn_is_answered_by_an_index_once_the_rows_are_counted(
    store, postgres_server, postgres_url
):
    await add_a_long_list(store)
    postgres_server.run("VACUUM ANALYZE", database=name_of(postgres_url))
    plans = {query: plan_of(store, query) for query in LOOKED_UP}
    assert [query for query, plan in plans.items() if "Index" not in plan] == []
    assert [
        query for query, plan in plans.items() if re.search("Seq Scan|Hash Join|Merge Join", plan)
    ] == []
    assert "task_ready" in plans["best_queued"]
    assert "Sort" not in plans["best_queued"]


async def add_a_long_list(store):
    """An objective with 1,200 tasks; half of them wait for the first one."""
    objective_id = await begin(store)
    for _ in range(2):
        await store.add_tasks(
            objective_id,
            [
                Proposal(name=f"Task {number}", after=(1,) if number % 2 else ())
                for number in range(600)
            ],
        )


def plan_of(store, query):
    """How the server goes about a query of SQL for values that it does not know yet."""
    numbers: dict[str, int] = {}
    statement = re.sub(
        r"%\((\w+)\)s",
        lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}",
        store._database._queries[query],
    )
    rows = named_rows(store, "EXPLAIN (GENERIC_PLAN) " + statement)
    return "\n".join(row["QUERY PLAN"] for row in rows)


async def test_a_long_list_is_read_row_by_row(store):
    objective_id = await begin(store)
    claim = await store.claim_task(objective_id, "w")
    for number in range(50):
        await store.record_step(
            claim.fence, Kept(key=f"{number}", kind="inputs", request_hash="h", output="{}")
        )
    assert (await store.verify()).n_steps == 50


async def test_up_to_where_no_event_is_missing_is_known_when_the_commits_under_way_have_ended(
    postgres_url,
):
    offload = ThreadOffload(n_threads=3)
    store = await open_postgres(postgres_url, offload=offload)
    slow, fast = await begin(store), await begin(store)
    with connect(postgres_url) as under_way:
        # as a write to one objective does, before it appends its event, which has the lower id
        under_way.execute("SELECT lock_for_writing(%s)", (slow,))
        under_way.execute(
            "INSERT INTO event (objective_id, kind, data, at_us) VALUES (%s, 'x', '{}', 0)", (slow,)
        )
        await store.append_event(fast, kind="x.happened", data={})
        settling = asyncio.create_task(store.last_event_id(None))
        while not waits_for_a_lock(under_way) and not settling.done():
            await asyncio.sleep(0.001)
        n_before = len(await store.events(None, after_id=0, limit=1000))
        assert not settling.done()
    settled = await settling

    assert [event.id for event in await store.events(None, after_id=0, limit=1000)][-1] == settled
    assert len(await store.events(None, after_id=0, limit=1000)) == n_before + 1
    await store.close()
    offload.close()


def waits_for_a_lock(connection):
    query = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "
        "(SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return connection.execute(query).fetchone()[0] > 0
