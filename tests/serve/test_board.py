import re
from urllib.parse import urlencode

import pytest

from babyagi.inbox import QUESTION, write_request
from babyagi.tasks import Level, Proposal
from support.served import Served
from support.workers import join
from tests.cli import homes, samples

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><blink>\u202e{{987654*8}}"


class Browser:
    """What a browser sends, without a script."""

    def __init__(self, served: Served, level: Level = Level.ADMIN):
        self.served = served
        self.cookie = served.cookie(served.session(level))

    async def look(self, path):
        return await self.served.ask("GET", path, level=None, cookie=self.cookie)

    async def send(self, path, word, **fields):
        data = urlencode({"word": word, **fields}).encode()
        head = {
            "cookie": self.cookie,
            "origin": f"http://{self.served.host}",
            "content_type": "application/x-www-form-urlencoded",
            "content_length": str(len(data)),
        }
        return await self.served.send(self.served.request("POST", path, level=None, **head) + data)


def word_of(page):
    return find(r'name="word" value="(\w+)"', page)


def find(pattern, page):
    found = re.search(pattern, page.text)
    assert found is not None
    return found[1]


async def fill(served, text=EVIL):
    """An objective in which every text is a model's or a stranger's: a result, a question, a task
    given up."""
    store = served.desk.store
    objective, _ = await store.create_objective(samples.spec(text), uid="u")
    await join(store, homes.WORKER, objective.id)
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    await store.record_result(claim, text=text, origins=["model"])
    await store.add_tasks(objective.id, [Proposal(name=text), Proposal(name=f"{text} too")])
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    request = write_request("ask_person", {"question": text})
    await store.park_task(claim.fence, key="1/execute/1/tool/1", kind=QUESTION, request=request)
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    await store.fail_task(claim, error=text, max_failures=1)
    return objective.id


PAGES = tuple(
    (
        "/ /inbox /objectives/1 /objectives/1/tasks /objectives/1/results "
        "/objectives/1/timeline "
        "/objectives/1/report /objectives/1/tasks/1 /objectives/1/tasks/2 /objectives/1/tasks/3"
    ).split()
)


async def test_the_timeline_reads_so_many_tasks_and_says_how_many_there_are(served, monkeypatch):
    await fill(served)
    browser = Browser(served)
    assert "Drawn from" not in (await browser.look("/objectives/1/timeline")).text

    monkeypatch.setattr("babyagi.serve.board.MAX_TASKS_DRAWN", 2)
    page = await browser.look("/objectives/1/timeline")

    assert "Drawn from the first 2 of 3 tasks" in page.text
    assert page.text.count('href="/objectives/1/tasks/') == 2


async def test_text_of_models_is_plain_text_on_every_page(served):
    await fill(served)
    browser = Browser(served)
    for path in PAGES:
        page = await browser.look(path)
        assert page.status == 200, path
        assert "&lt;script&gt;" in page.text, path
        assert not re.search(r"<script(?! src=\"/static/board.js\" defer>)", page.text), path
        assert not re.search(r"<img(?! src=\"/static)|<blink>|onerror=[^&]*>|\u202e", page.text), (
            path
        )
        assert str(987654 * 8) not in page.text, path


async def test_no_page_has_inline_code_or_asks_anybody_else(served):
    await fill(served, text="Know it")
    browser = Browser(served)
    for path in (*PAGES, "/objectives/1/duties/plan", "/schedules"):
        page = await browser.look(path)
        assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|//\w", page.text), path
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"


async def test_forms_do_what_the_operations_do(served):
    browser = Browser(served)
    word = word_of(await browser.look("/"))

    made = await browser.send("/do/objectives", word, objective="Know it", max_tasks="7", name="")
    added = await browser.send("/do/objectives/1/tasks", word, name="Sing", back="/objectives/1")
    moved = await browser.send("/do/objectives/1/tasks/2/move", word, to="first")
    wrong = await browser.send("/do/objectives/1/tasks/2/move", word, to="nowhere")
    paused = await browser.send("/do/objectives/1/pause", word, back="//evil.example")

    assert [one.headers["location"] for one in (made, added, moved, paused)] == [
        "/objectives/1",
        "/objectives/1",
        "/objectives/1",
        "/",
    ]
    assert wrong.status == 422
    objective = await served.desk.store.objective(1)
    assert (objective.status.value, objective.spec.limits.max_tasks) == ("paused", 7)
    assert (await served.desk.store.tasks(1))[0].name == "Sing"


@pytest.mark.parametrize(
    ("page", "path"),
    [
        ("/objectives/1", "/do/objectives/1/cancel"),
        ("/objectives/1/tasks/2", "/do/objectives/1/tasks/2/skip"),
        ("/schedules", "/do/schedules/1/remove"),
        ("/objectives/2", "/do/objectives/2/delete"),
    ],
)
async def test_an_action_that_cannot_be_undone_asks_first_even_without_a_script(page, path, served):
    browser = Browser(served)
    word = word_of(await browser.look("/"))
    for text in ("Know it", "Forget it"):
        await browser.send("/do/objectives", word, objective=text)
    await browser.send("/do/objectives/1/tasks", word, name="Sing")
    await browser.send("/do/schedules", word, objective="Sing", every="1d", back="/schedules")
    await browser.send("/do/objectives/2/cancel", word)
    before = await kept(served)

    shown = await browser.look(page)
    asked = find(
        rf'<details[^>]*><summary[^>]*>\w+</summary>\s*<p class="why">([^<]*)</p>\s*'
        rf'<form method="post" action="{path}"',
        shown,
    )
    done = await browser.send(path, word, back='//evil.example/"><b>')

    assert asked.endswith(("?", "are kept, and a report is written from them.", "go on."))
    assert (done.status, done.headers["location"]) == (303, "/")
    assert await kept(served) != before


async def test_results_are_shown_and_a_task_is_put_in_the_place_of_another(served):
    await fill(served, text="The hall costs forty euros")
    browser = Browser(served)
    word = word_of(await browser.look("/"))
    await browser.send("/do/objectives/1/tasks", word, name="Sing")

    found = await browser.look("/objectives/1/results")
    edited = await browser.send("/do/objectives/1/tasks/4/edit", word, name="Dance")

    assert "The hall costs forty euros" in found.text
    assert edited.status == 303
    assert (await served.desk.store.task(1, 5)).name == "Dance"


async def test_a_schedule_says_what_becomes_of_late_ticks(served):
    browser = Browser(served)
    page = await browser.look("/schedules")
    fields = {"every": "1d", "overlap": "allow", "catch_up": "all", "grace": "2h"}
    assert all(f'name="{name}"' in page.text for name in fields)

    added = await browser.send("/do/schedules", word_of(page), objective="Sing", **fields)

    (kept,) = await served.desk.store.schedules()
    assert added.status == 303
    assert (kept.spec.overlap, kept.spec.catch_up) == ("allow", "all")
    assert kept.spec.grace_s == 7200


async def kept(served):
    store = served.desk.store
    return (
        found := [(one.id, one.status) for one in await store.objectives()],
        [(one.id, one.status) for id_, _ in found for one in await store.tasks(id_)],
        [one.status for one in await store.schedules()],
    )


async def test_an_answer_is_given_in_the_inbox(served):
    await fill(served, text="Which currency?")
    browser = Browser(served)
    page = await browser.look("/inbox")
    path = find(r'action="(/do/inbox/\d+/answer)"', page)

    answered = await browser.send(path, word_of(page), text="Euros", back="/inbox")

    assert (answered.status, answered.headers["location"]) == (303, "/inbox")
    assert "Nothing waits for you." in (await browser.look("/inbox")).text


async def test_who_may_only_read_sees_no_form_and_changes_nothing(served):
    await fill(served, text="Know it")
    browser = Browser(served, Level.READ)
    for path in PAGES:
        assert 'method="post"' not in (await browser.look(path)).text
    word = served.desk.keys.form_word(browser.cookie.partition("=")[2])

    refused = await browser.send("/do/objectives/1/pause", word)
    assert refused.status == 403
    assert "babyagi serve open --level steer" in refused.text


async def test_a_code_opens_the_board_once(served):
    code = (await served.ask("POST", "/api/v1/codes", {"level": "steer"})).json()["code"]

    opened = await served.ask("GET", f"/open?code={code}", level=None)
    again = await served.ask("GET", f"/open?code={code}", level=None)
    cookie = opened.headers["set-cookie"]

    assert (opened.status, again.status) == (200, 403)
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    page = await served.ask("GET", "/", level=None, cookie=cookie.partition(";")[0])
    assert "Submit" in page.text


async def test_a_page_says_from_where_on_it_hears_events(served):
    await fill(served, text="Know it")
    page = await Browser(served).look("/objectives/1")

    last = await served.desk.store.last_event_id(1)
    assert f'data-events="/api/v1/objectives/1/events" data-after="{last}"' in page.text


@pytest.mark.parametrize("name", ["board.js", "board.css", "mark.svg"])
async def test_what_a_page_loads_is_there_for_everybody(name, served):
    reply = await served.ask("GET", f"/static/{name}", level=None)

    assert reply.status == 200
    assert reply.body


async def test_a_long_list_is_shown_in_part_with_how_much_more_there_is(served):
    store = served.desk.store
    objective, _ = await store.create_objective(samples.spec("Know it"), uid="u")
    await store.add_tasks(objective.id, [Proposal(name=f"Task {n}x") for n in range(80)])

    page = await Browser(served).look("/objectives/1")

    assert page.text.count('class="card queued"') == 50
    assert "and 31 more" in page.text


async def test_a_list_goes_on_page_by_page_and_by_status(served):
    store = served.desk.store
    objective, _ = await store.create_objective(samples.spec("Know it"), uid="u")
    await store.add_tasks(objective.id, [Proposal(name=f"Task {n}x") for n in range(80)])
    browser = Browser(served)

    first = await browser.look("/objectives/1/tasks?status=queued")
    path = find(r'href="(/objectives/1/tasks\?[^"]*after=\d+)"', first).replace("&amp;", "&")
    second = await browser.look(path)

    assert (first.text.count("<tr class="), second.text.count("<tr class=")) == (50, 31)
    assert "Next page" not in second.text
    assert (await browser.look("/objectives/1/tasks?status=nonsense")).status == 422


async def test_the_list_of_objectives_is_filtered(served):
    store = served.desk.store
    for text in ("Know it", "Sing it"):
        await store.create_objective(samples.spec(text), uid=text)
    browser = Browser(served)

    found = await browser.look("/?words=sing&state=active")
    none = await browser.look("/?words=&state=ended")

    assert "Sing it" in found.text
    assert "Know it" not in found.text
    assert "No objective matches this filter." in none.text


async def test_there_is_no_page_of_a_duty_that_does_not_exist(served):
    await fill(served, text="Know it")
    browser = Browser(served)

    assert (await browser.look("/objectives/1/duties/check")).status == 200
    assert (await browser.look("/objectives/1/duties/dance")).status == 404
