import asyncio
import hashlib
import hmac
import json
import logging
import os
import sys
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.settings.load import bare_environment
from babyagi.settings.values import parse_notify
from babyagi.tasks import Role, StopReason
from babyagi.tools.catalog import build_ask_user
from babyagi.worker import notify
from babyagi.worker.notify import Notifier, is_address, make_sender, sign
from support.scripted import ScriptedModel
from support.world import World

SIGNED_AT = datetime.fromtimestamp(1_800_000_000, UTC)
KEY = "of the home"
ENVIRON = {"PATH": os.environ["PATH"]}


def ask_once(prompt, role):
    if role is Role.CREATION:
        return '{"tasks": []}'
    if role is Role.EXECUTION and not any(
        message.speaker is Speaker.TOOL for message in prompt.messages
    ):
        return (ToolCall(id="c1", name="ask_user", arguments='{"question": "Which day?"}'),)
    return "an answer"


async def run_and_notify(target):
    """A run that ends waiting for a person, and who is told."""
    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()
    send = make_sender(target, environ=ENVIRON, key=KEY, now=lambda: SIGNED_AT)
    notifier = Notifier(world.store, send, now=world.clock, with_text=is_address(target))
    async with notifier.watching(objective.id):
        return await world.run(objective)


def command(code):
    return f"{sys.executable} -c '{code}'"


@pytest.mark.system
async def test_a_command_gets_the_end_as_json_on_its_standard_input_without_a_shell(tmp_path):
    told = tmp_path / "told; touch here"
    ended = await run_and_notify(
        f'{sys.executable} -c \'import sys; open(sys.argv[1], "a").write(sys.stdin.read() + '
        f"chr(10))' '{told}'"
    )

    assert ended.stop_reason is StopReason.WAITING
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert (events[-1]["kind"], events[-1]["data"]["reason"], events[-1]["v"]) == (
        "objective.ended",
        "waiting",
        1,
    )
    assert "Which day?" not in told.read_text()
    assert [path.name for path in tmp_path.iterdir()] == [told.name]


async def test_a_task_that_begins_to_wait_is_told_while_the_run_goes_on():
    told = []

    async def send(text):
        told.append(json.loads(text)["kind"])

    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()

    async def work():
        ended = await world.run(objective)
        while not told:
            await asyncio.sleep(0.01)
        return ended

    async with asyncio.timeout(120):
        async with Notifier(world.store, send, now=world.clock).watching(objective.id):
            await work()

    assert told == ["task.parked", "objective.ended"]


async def test_what_is_being_told_when_the_run_ends_is_told_first():
    told = []

    async def send(text):
        kind = json.loads(text)["kind"]
        await asyncio.sleep(0.2 if kind == "task.parked" else 0)
        told.append(kind)

    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()

    async def work():
        ended = await world.run(objective)
        await asyncio.sleep(0.1)
        return ended

    async with Notifier(world.store, send, now=world.clock).watching(objective.id):
        await work()

    assert told == ["task.parked", "objective.ended"]


@pytest.fixture
def hook():
    """An address on this machine that keeps what it is sent and answers with a status."""
    kept = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            kept.append(
                (self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            )
            self.send_response(302 if self.path == "/elsewhere" else 204)
            self.send_header("Location", "/there")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", kept
    server.shutdown()
    thread.join()
    server.server_close()


async def test_an_address_gets_the_end_by_post(hook):
    address, kept = hook
    await run_and_notify(f"{address}/hook?to=me")

    assert kept[-1][0] == "/hook?to=me"
    assert kept[-1][1]["kind"] == "objective.ended"


async def test_a_notification_to_an_address_says_what_a_person_needs(hook):
    address, kept = hook
    await run_and_notify(f"{address}/hook")

    text = kept[-1][1]["text"]
    assert "objective 1 (" in text and "has ended: waiting" in text
    assert "babyagi report --objective 1" in text


async def test_a_notification_to_an_address_is_signed_with_its_time():
    body = b'{"id": 1}'

    headers = sign(body, key=KEY, at=SIGNED_AT)

    mark = hmac.new(b"of the home", b"1800000000." + body, hashlib.sha256).hexdigest()
    assert headers == {"x-babyagi-timestamp": "1800000000", "x-babyagi-signature": f"v1={mark}"}


async def test_a_question_that_could_not_be_told_is_tried_again_with_its_text(monkeypatch):
    monkeypatch.setattr(notify, "FIRST_PAUSE_S", 0.0)
    told = []

    async def send(text):
        told.append(json.loads(text))
        if len(told) == 1:
            raise OSError("away")

    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()

    async def work():
        ended = await world.run(objective)
        while len(told) < 2:
            await asyncio.sleep(0.01)
        return ended

    async with asyncio.timeout(120):
        notifier = Notifier(world.store, send, now=world.clock, with_text=True)
        async with notifier.watching(objective.id):
            await work()

    assert [one["kind"] for one in told] == ["task.parked", "task.parked", "objective.ended"]
    assert told[0] == told[1]
    assert "Which day?" in told[0]["text"] and "babyagi inbox" in told[0]["text"]


async def follow(notifier):
    """Send what is pending, as a worker does beside its work."""
    async with notifier.watching_all():
        for _ in range(50):
            await asyncio.sleep(0)


async def test_a_notification_that_was_not_sent_before_a_kill_is_sent_by_the_next_worker(
    monkeypatch,
):
    told, is_away = [], True

    async def send(text):
        if is_away:
            raise OSError("away")
        told.append(json.loads(text)["kind"])

    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()
    async with Notifier(world.store, send, now=world.clock).watching(objective.id):
        await world.run(objective)
    is_away = False

    for _ in range(2):  # the second one finds nothing left
        await follow(Notifier(world.store, send, now=world.clock))

    assert told == ["task.parked", "objective.ended"]


async def test_a_notification_that_failed_for_a_day_is_dropped(caplog):
    told = []

    async def away(text):
        raise OSError("away")

    async def send(text):
        told.append(text)

    world = World(model=ScriptedModel(ask_once), tools=(build_ask_user(),))
    objective = await world.start()
    async with Notifier(world.store, away, now=world.clock).watching(objective.id):
        await world.run(objective)

    def later():
        return world.clock() + timedelta(days=1)

    await follow(Notifier(world.store, send, now=later))

    assert told == []
    assert "the notification about objective.ended failed for a day" in caplog.text


async def test_a_redirect_is_not_followed(hook, caplog):
    address, kept = hook
    await run_and_notify(f"{address}/elsewhere")

    assert {path for path, _ in kept} == {"/elsewhere"}
    assert "answered with HTTP status 302" in caplog.text


@pytest.mark.system
@pytest.mark.parametrize(
    "target", [command("raise SystemExit(3)"), "/no/such/command", "http://127.0.0.1:9/"]
)
async def test_a_notification_that_fails_is_logged_and_the_run_ends_as_it_would(target, caplog):
    with caplog.at_level(logging.WARNING):
        ended = await run_and_notify(target)

    assert ended.stop_reason is StopReason.WAITING
    assert ended.has_report
    assert "the notification of task.parked failed" in caplog.text


@pytest.mark.system
async def test_a_command_that_hangs_is_killed_and_holds_the_end_up_only_for_its_time(
    monkeypatch, caplog
):
    monkeypatch.setattr(notify, "TIMEOUT_S", 0.3)

    async with asyncio.timeout(120):
        await run_and_notify("sleep 3600")

    assert "took longer than 0.3 s" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "http://",
        "https://user:secret@example.org/x",
        "'unbalanced",
        "   ",
        "ftp://example.org/x",
        "HTTPS://example.org/x",
    ],
)
def test_a_value_that_is_neither_a_command_nor_an_address_is_refused(text):
    with pytest.raises(ValueError, match="a command, or an address"):
        parse_notify(text)


def test_a_hooks_address_is_kept_as_it_is_and_shown_nowhere():
    kept = parse_notify("https://example.org/hook/")

    assert kept.reveal() == "https://example.org/hook/"
    assert "example" not in repr(kept)


@pytest.mark.system
async def test_a_command_gets_where_programs_are_the_home_the_language_and_no_key(
    tmp_path, monkeypatch
):
    for name, value in {
        "OPENAI_API_KEY": "sk-x",
        "MY_TOKEN": "t",
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    told = tmp_path / "told"
    sender = make_sender(
        f"sh -c 'env > {told}; cat > /dev/null'",
        environ=bare_environment(),
        key="",
        now=lambda: SIGNED_AT,
    )

    await sender("{}")

    given = dict(line.split("=", 1) for line in told.read_text().splitlines())
    assert {name: given[name] for name in ("HOME", "LANG", "LC_TIME")} == {
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
    }
    # the last are the shell's own
    assert set(given) - {"PATH", "HOME", "LANG", "LC_TIME", "PWD", "OLDPWD", "SHLVL", "_"} == set()


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/hook?token=hunter2 hunter3",
        "http://127.0.0.1:9\x7f/hunter2",
        "http://[hunter2/",
        "http://127.0.0.1:hunter2/",
    ],
)
async def test_no_part_of_an_address_stands_in_the_log(address, caplog):
    with caplog.at_level(logging.WARNING):
        await run_and_notify(address)

    assert "the notification of task.parked failed" in caplog.text
    assert "hunter" not in caplog.text


async def test_an_address_with_a_blank_is_asked_for_as_it_was_meant(hook):
    address, kept = hook
    await run_and_notify(f"{address}/a b?to=me and%20you")

    assert kept[-1][0] == "/a%20b?to=me%20and%20you"
