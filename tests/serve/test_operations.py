"""What the API gives beside what the command line says (`test_two_doors.py`)."""

import asyncio
import json
import re
from functools import partial
from typing import Any

import pytest

from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from babyagi.files.home import remembered_folder
from babyagi.inbox import APPROVAL, write_request
from babyagi.serve import wire
from babyagi.serve.operations import OPERATIONS
from babyagi.tasks import Level
from babyagi.taskstore.sql.store import TaskStore
from babyagi.verbs.verb_table import BASE
from support.served import serving
from support.workers import join
from tests.cli import homes, looked_at, samples

ONE = f"{BASE}/objectives/1"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    close_log()


@pytest.fixture
def type_line(capsys):
    def _type(*words):
        code = run_guarded(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return _type


def test_no_two_operations_have_one_address_or_one_name():
    addresses = [(one.method, re.sub(r"{\w+}", "{}", one.path)) for one in OPERATIONS]

    assert len(set(addresses)) == len(addresses)
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)


def test_a_route_that_changes_something_needs_more_than_the_lowest_level():
    assert [one.name for one in OPERATIONS if one.method != "GET" and one.level is Level.READ] == []


def ask(home, *calls):
    """What a server on the home answers to (method, path, body), in turn."""

    async def work():
        async with serving(home) as served:
            return [await served.ask(*call) for call in calls]

    return asyncio.run(work())


def same(value):
    """Without what differs from one moment to the next."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "AT", json.dumps(value))
    text = re.sub(r"((?:lease_left_s|time_s)\": )-?[\d.]+", r"\1S", text)
    return re.sub(r"\d+(\.\d+)? (s|min|h)\b", "WHILE", text)


def test_the_log_has_the_events_of_the_command(home, type_line):
    looked_at.fill_running_home()
    lines = type_line("show", "log", "5", "--json")[1].splitlines()
    (reply,) = ask(home, ("GET", f"{ONE}/log?task=5"))

    known = [event["id"] for event in reply.json()]
    assert [one["id"] for one in map(json.loads, lines) if one["id"] not in known] == []


def test_a_submission_is_made_once_for_its_key(home):
    body = {"objective": "Know it", "max_tasks": 7, "name": "mine"}

    async def work():
        async with serving(home) as served:
            key = {"idempotency_key": "k1"}
            made = [
                await served.ask("POST", f"{BASE}/objectives", {**body, "new": True}, **key)
                for _ in range(2)
            ]
            other = await served.ask("POST", f"{BASE}/objectives", {"objective": "Other"}, **key)
            found = await served.ask("GET", ONE)
            return made, other, found

    (first, again), other, found = asyncio.run(work())

    assert (first.status, again.status, other.status) == (201, 201, 422)
    assert first.body == again.body
    assert first.json()["is_new"]
    assert found.json()["limits"]["max_tasks"] == 7
    assert found.json()["objective"]["text"] == "Know it"


def test_a_further_question_opens_the_objective_again(home):
    looked_at.fill_ended_home()
    question = {"question": "And the tax?", "max_tasks": 100}

    asked, stands = ask(home, ("POST", f"{ONE}/questions", question), ("GET", ONE))

    assert asked.status == 200, asked.text
    assert stands.json()["objective"]["further"] == ["And the tax?"]
    assert stands.json()["status"] == "active"


@pytest.mark.parametrize("name", ["tasks", "results", "log"])
def test_a_long_list_comes_in_pages_with_the_way_to_the_next(name, home):
    looked_at.fill_running_home()
    whole, *_ = ask(home, ("GET", f"{ONE}/{name}"))
    assert len(whole.json()) > 1

    async def walk():
        found, path = [], f"{ONE}/{name}?limit=1"
        async with serving(home) as served:
            while path:
                reply = await served.ask("GET", path)
                found += reply.json()
                link = re.fullmatch(r'<(.*)>; rel="next"', reply.headers.get("link", ""))
                path = link[1] if link else ""
        return found

    assert same(asyncio.run(walk())) == same(whole.json())


def test_only_a_call_that_the_person_saw_can_be_approved(home, tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("old\n")

    async def work():
        async with serving(home, BABYAGI_FILES=str(folder)) as served:
            store = served.desk.store
            objective, _ = await store.create_objective(samples.spec(), uid="u")
            await join(store, homes.WORKER, objective.id)
            claim = await store.claim_task(objective.id, homes.WORKER.id)
            assert claim is not None
            request = write_request(
                "write_file", {"path": "a.md", "text": "new\n", "replace": True}
            )
            step = await store.park_task(
                claim.fence, key="1/execute/1/tool/1", kind=APPROVAL, request=request
            )
            path = f"{BASE}/inbox/{step.id}"
            shown = (await served.ask("GET", path)).json()
            blind = await served.ask("POST", f"{path}/approve", {})
            (folder / "a.md").write_text("other\n")
            stale = await served.ask("POST", f"{path}/approve", {"seen": shown["seen"]})
            fresh = (await served.ask("GET", path)).json()
            done = await served.ask("POST", f"{path}/approve", {"seen": fresh["seen"]})
            assert done.json()["elsewhere"] == [f"{homes.WORKER.name} on {homes.WORKER.host}"]
            return shown, [blind.status, stale.status, done.status]

    shown, statuses = asyncio.run(work())

    assert shown["lines"][:2] == [["-", "old"], ["+", "new"]]
    assert statuses == [409, 409, 200]


SCHEDULES = f"{BASE}/schedules"
EVERY_HOUR = {"objective": "Look after the tea", "every": "1h", "grace": "10m", "overlap": "allow"}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"every": None}, 422),
        ({"every": "often"}, 422),
        ({"cron": "* * * * *"}, 422),
        ({"every": None, "cron": "1 2 3"}, 422),
        ({"every": None, "at": "0001-01-01T00:00", "tz": "Asia/Tokyo"}, 422),
        ({"every": None, "at": "9999-12-31T23:59", "tz": "America/New_York"}, 422),
        ({"tz": "../../etc/passwd"}, 422),
        ({"grace": "9" * 300 + "s"}, 422),
        ({"overlap": "sometimes"}, 422),
        ({"daily_limit_usd": -1}, 422),
        ({"objective": " "}, 422),
    ],
)
def test_an_invalid_schedule_is_refused_in_words(more, status, home):
    body = {key: one for key, one in {**EVERY_HOUR, **more}.items() if one is not None}

    reply, kept = ask(home, ("POST", SCHEDULES, body), ("GET", SCHEDULES))

    assert (reply.status, kept.json()) == (status, []), reply.text
    assert reply.json()["title"]


@pytest.mark.parametrize("address", ["/metrics", f"{BASE}/metrics"])
def test_the_api_and_the_command_line_give_the_same_metrics(address, home, type_line):
    looked_at.fill_running_home()
    _, said, _ = type_line("store", "metrics")

    (reply,) = ask(home, ("GET", address))

    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert measured(reply.text) == measured(said)


def measured(text):
    """The names and labels of what is measured, and what does not pass with time."""
    return [line for line in text.splitlines() if "_seconds" not in line.partition(" ")[0]]


def test_metrics_need_the_level_read(home):
    async def work():
        async with serving(home) as served:
            return [
                (await served.ask("GET", "/metrics", level=level)).status
                for level in (None, Level.READ)
            ]

    assert asyncio.run(work()) == [401, 200]


def test_what_is_deleted_is_gone(home):
    looked_at.fill_ended_home()

    gone, missing, left = ask(home, ("DELETE", ONE), ("GET", ONE), ("GET", f"{BASE}/objectives"))

    assert (gone.status, missing.status, left.json()) == (200, 404, [])


def test_a_report_comes_in_each_format_as_a_file(home):
    looked_at.fill_ended_home()

    md, html, other = ask(
        home, *(("GET", f"{ONE}/report?format={one}") for one in ("md", "html", "docx"))
    )

    assert md.text == homes.REPORT
    assert html.text.startswith("<!")
    assert html.headers["content-disposition"] == 'attachment; filename="objective-1.html"'
    assert other.status == 422


# -- what a submission may ask for
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def handed_out(tmp_path):
    """A folder that a server hands out, with one within it, and a way out of it."""
    folder = tmp_path / "documents"
    (folder / "part").mkdir(parents=True)
    (folder / "out").symlink_to(tmp_path)
    return folder


def test_a_submission_gets_no_more_than_the_server_hands_out(home, handed_out):
    refused = (
        {"tools": ["run_python"]},
        {"files": ".."},
        {"files": "/etc"},
        {"files": "out"},
        {"files": "part/../../home"},
        {"files": "a\0b"},
        {"agent": "other"},
    )

    async def work():
        variables = {"BABYAGI_FILES": str(handed_out), "BABYAGI_TOOLS": "calculator"}
        async with serving(home, **variables) as served:
            body = {"objective": "Know it", "tools": ["calculator", "read_file"], "files": "part"}
            made = await served.ask("POST", f"{BASE}/objectives", body)
            shown = await served.ask("GET", ONE)
            wrong = [
                await served.ask("POST", f"{BASE}/{where}", {"objective": "x", **more})
                for where in ("objectives", "schedules")
                for more in refused
            ]
            return made, shown, wrong

    made, shown, wrong = asyncio.run(work())

    assert made.status == 201, made.text
    assert [one["name"] for one in shown.json()["tools"]] == ["read_file", "calculator"]
    assert remembered_folder(home, shown.json()["objective"]["uid"]) == handed_out / "part"
    assert {one.status for one in wrong} == {422}
    assert all("this server does not offer" in one.json()["title"] for one in wrong)


def test_a_server_without_a_folder_hands_out_none(home):
    (reply,) = ask(home, ("POST", f"{BASE}/objectives", {"objective": "x", "files": "."}))

    assert (reply.status, reply.json()["try"]) == (422, "babyagi serve --files FOLDER")


@pytest.mark.parametrize(
    ("path", "body", "limit"),
    [
        ("objectives", {"objective": "x", "new": True}, "max_cost_usd"),
        ("objectives", {"objective": "x", "new": True}, "max_tasks"),
        ("schedules", {"objective": "x", "every": "1d"}, "max_cost_usd"),
        ("schedules", {"objective": "x", "every": "1d"}, "daily_limit_usd"),
        ("objectives/1/extend", {}, "max_cost_usd"),
        ("objectives/1/questions", {"question": "why"}, "max_tasks"),
    ],
)
def test_only_an_admin_sets_limits_above_those_of_the_server(path, body, limit, home):
    async def work():
        variables = {"BABYAGI_MAX_COST_USD": "1", "BABYAGI_MAX_TASKS": "9"}
        async with serving(home, **variables) as served:
            await served.ask("POST", f"{BASE}/objectives", {"objective": "Know it"})
            sent = [(value, Level.STEER) for value in (0, 10, 1)] + [(2, Level.ADMIN)]
            return [
                (await served.ask("POST", f"{BASE}/{path}", {**body, limit: value}, level=level))
                for value, level in sent
            ]

    none, high, low, admin = asyncio.run(work())

    assert low.status < 300, low.text
    assert admin.status < 300, admin.text
    assert (none.status, high.status) == (403, 403)


@pytest.mark.parametrize(
    ("path", "body", "listed"),
    [
        ("objectives", {"objective": "Know it", "new": True}, "objectives"),
        ("schedules", {"objective": "Know it", "every": "1d"}, "schedules"),
        ("objectives/1/tasks", {"name": "Sing"}, "objectives/1/tasks"),
        ("objectives/1/questions", {"question": "why"}, "objectives/1/tasks"),
    ],
)
def test_requests_with_the_same_key_create_one_objective_even_at_the_same_time(
    path, body, listed, home
):
    async def work():
        async with serving(home) as served:
            await served.ask("POST", f"{BASE}/objectives", {"objective": "First"})
            before = len((await served.ask("GET", f"{BASE}/{listed}")).json())
            key = {"idempotency_key": "k1"}
            made = await asyncio.gather(
                *(served.ask("POST", f"{BASE}/{path}", body, **key) for _ in range(4))
            )
            other = {name: "Other" if isinstance(one, str) else one for name, one in body.items()}
            other |= {"every": "1d"} if "every" in body else {}
            wrong = await served.ask("POST", f"{BASE}/{path}", other, **key)
            after = len((await served.ask("GET", f"{BASE}/{listed}")).json())
            return made, wrong.status, after - before

    made, wrong, n_added = asyncio.run(work())

    assert made[0].status in (200, 201), made[0].text
    assert {(one.status, one.body) for one in made} == {(made[0].status, made[0].body)}
    assert (wrong, n_added) == (422, 1)


POSTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("objectives", {"objective": "Know it", "new": True}),
    ("schedules", {"objective": "Know it", "every": "1d"}),
    ("objectives/1/tasks", {"name": "Sing"}),
    ("objectives/1/questions", {"question": "why"}),
    ("objectives/1/tasks/1/edit", {"name": "Dance"}),
    ("objectives/1/tasks/2/skip", {}),
    ("objectives/1/extend", {"max_tasks": 9}),
    ("objectives/1/pause", {}),
    ("objectives/1/cancel", {}),
)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
async def test_a_request_with_a_key_whose_server_died_before_it_answered_is_not_done_again_by_another(
    kind, request, tmp_path, monkeypatch
):
    store = (
        f"sqlite://{tmp_path}/tasks.db"
        if kind == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    more = {"BABYAGI_TASK_STORE": store}

    async def die(*_, **__):
        raise ConnectionAbortedError

    async with serving(tmp_path / "a", **more) as dying, serving(tmp_path / "b", **more) as other:
        await other.ask("POST", f"{BASE}/objectives", {"objective": "First"})
        await other.ask("POST", f"{ONE}/tasks", {"name": "Look"})
        for path, body in POSTS:
            send = partial(ask_with_key, path=f"{BASE}/{path}", body=body)
            with monkeypatch.context() as broken:
                broken.setattr(TaskStore, "_keep_answer", die)
                assert (await send(dying)).status == 500
            after_it = await n_events(other)
            first, again = await send(other), await send(dying)

            assert first.status in (200, 201), first.text
            assert (again.status, again.body) == (first.status, first.body)
            assert await n_events(other) == after_it


async def ask_with_key(served, *, path, body):
    return await served.ask("POST", path, body, idempotency_key="k1")


async def n_events(served):
    """How much has happened to anything in the store."""
    found = await served.app.store.objectives()
    n_schedules = len(await served.app.store.schedules())
    return n_schedules + sum([await served.app.store.last_event_id(one.id) for one in found])


async def test_a_repeated_decision_about_a_request_gets_its_first_answer(home, monkeypatch):
    await asyncio.to_thread(looked_at.fill_running_home)
    async with serving(home) as served:
        (number,) = [one["number"] for one in (await served.ask("GET", f"{BASE}/inbox")).json()]
        send = partial(
            ask_with_key, served, path=f"{BASE}/inbox/{number}/answer", body={"text": "yes"}
        )

        async def die(*_, **__):
            raise ConnectionAbortedError

        with monkeypatch.context() as broken:
            broken.setattr(TaskStore, "_keep_answer", die)
            assert (await send()).status == 500
        first, again = await send(), await send()

    assert first.status == 200, first.text
    assert (again.status, again.body) == (first.status, first.body)


async def test_a_pause_that_comes_again_late_does_not_stop_what_was_resumed(home):
    await asyncio.to_thread(looked_at.fill_running_home)
    async with serving(home) as served:
        paused = await ask_with_key(served, path=f"{ONE}/pause", body={})
        await served.ask("POST", f"{ONE}/resume", {})
        late = await ask_with_key(served, path=f"{ONE}/pause", body={})
        stands = await served.ask("GET", ONE)

    assert late.body == paused.body
    assert stands.json()["status"] == "active"


async def test_a_body_that_does_not_come_is_given_up_on_every_route_at_once(served, monkeypatch):
    monkeypatch.setattr(wire, "BODY_TIMEOUT_S", 0.3)
    paths = [re.sub(r"{\w+}", "1", one.path) for one in OPERATIONS if one.has_body]
    slow = [
        served.send(served.request("POST", f"{BASE}{path}", content_length="9")) for path in paths
    ]

    waiting = asyncio.gather(*slow)
    beside = await served.ask("GET", f"{BASE}/objectives")
    replies = await waiting

    assert beside.status == 200
    assert {one.status for one in replies} == {408}
