"""What results were made from: traced through the steps, listed in the report, held against what
the answer names."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.pages.markdown import render_html
from babyagi.reporting.sources import (
    Source,
    SourceKind,
    Sources,
    find_unopened,
    render_sources,
    sources_shape,
    trace_sources,
)
from babyagi.tasks import Effect, Fetched, Passage, Role
from babyagi.tools.base import Observation, Tool, takes
from babyagi.tools.catalog import TOOL_NAMES
from babyagi.tools.recall import RECALL
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, virtually

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
FLASK = Fetched(
    url="https://flask.example/licence",
    title="Flask's licence",
    fetched_at=AT,
    digest="ab" * 32,
    asked_url="https://flask.example/l",
)


async def run_once():
    """A store in which the first task has opened a page, and its objective."""

    async def run(arguments):
        return Passage(text="BSD", origin=f"web:{FLASK.url}", pages=(FLASK,))

    def answer(prompt, role):
        if role is not Role.EXECUTION:
            return json.dumps({"tasks": [], "unanswered": [], "objective_met": True})
        has_read = any(message.speaker is Speaker.TOOL for message in prompt.messages)
        return "It is BSD." if has_read else (ToolCall(id="c", name="look", arguments="{}"),)

    look = Tool(name="look", description="Look.", parameters=takes(), effect=Effect.READ, run=run)
    world = VirtualWorld(model=ScriptedModel(answer), tools=[look])
    return world.store, await world.run()


def source(name, *, kind=SourceKind.PAGE, task_ids=(1,), page=None):
    return Source(kind=kind, name=name, task_ids=task_ids, page=page)


def listed(sources, answer="", most=10):
    return render_sources(sources, answer, most=most, more="look there")


@virtually
async def test_a_source_names_the_tasks_that_used_it_and_what_is_known_of_the_page():
    store, objective = await run_once()
    url = f"web:{FLASK.url}"
    (made,) = await store.results(objective.id)
    results = [
        made,
        replace(made, task_id=2, origins=("program", "file:a.md", "more:7", "model:m")),
        replace(made, task_id=3, origins=("search:brave", "tool:web_search", "result:1")),
        replace(made, task_id=4, origins=(url, "file:a.md", "web:https://old.example/")),
    ]

    found = await trace_sources(store, results)

    assert [(one.name, one.task_ids, one.page) for one in found.named] == [
        (FLASK.url, (1, 4), FLASK),
        ("a.md", (2, 4), None),
        ("https://old.example/", (4,), None),
        ("brave", (3,), None),
    ]
    assert found.n_unnamed == 7
    assert sources_shape(found)[0] == {
        "kind": "page",
        "name": FLASK.url,
        "task_ids": [1, 4],
        "title": "Flask's licence",
        "fetched_at": "2026-11-22T12:00:00+00:00",
        "sha256": "ab" * 32,
    }
    assert f"<{FLASK.url}> (fetched 2026-11-22" in await store.report(objective.id)


@virtually
async def test_what_came_with_an_earlier_result_is_said_of_the_task_that_read_it():
    store, objective = await run_once()
    (made,) = await store.results(objective.id)
    results = [
        made,
        replace(made, task_id=2, origins=("result:1", "file:b.md", *made.origins)),
        replace(made, task_id=3, origins=("result:2", "result:9/4", "file:b.md", *made.origins)),
    ]

    found = await trace_sources(store, results)

    assert [(one.name, one.task_ids) for one in found.named] == [(FLASK.url, (1,)), ("b.md", (2,))]
    assert len((await trace_sources(store, results[2:])).named) == 2


@virtually
async def test_every_task_that_read_a_file_itself_is_named_though_it_was_given_a_result_of_it():
    async def run(arguments):
        return Passage(text="BSD", origin="file:notes.md")

    def answer(prompt, role):
        agent = prompt.messages[0].text.split()[1]
        if agent == "creation" and not any("Read it again" in m.text for m in prompt.messages):
            return json.dumps({"tasks": [{"name": "Read it again", "after": [1]}]})
        if role is not Role.EXECUTION:
            return json.dumps({"tasks": []})
        has_read = any(message.speaker is Speaker.TOOL for message in prompt.messages)
        return "It is BSD." if has_read else (ToolCall(id="c", name="look", arguments="{}"),)

    look = Tool(name="look", description="Look.", parameters=takes(), effect=Effect.READ, run=run)
    world = VirtualWorld(model=ScriptedModel(answer), tools=[look])
    objective = await world.run()

    first, second, *_ = await world.store.results(objective.id)
    assert {"result:1", "file:notes.md"} <= set(second.origins)
    found = await trace_sources(world.store, [first, second])
    assert [(one.name, one.task_ids) for one in found.named] == [("notes.md", (1, 2))]


@virtually
async def test_of_the_tools_that_ship_those_that_compute_are_sources_themselves():
    store, objective = await run_once()
    (made,) = await store.results(objective.id)
    origins = tuple(f"tool:{name}" for name in (*TOOL_NAMES, RECALL))

    found = await trace_sources(store, [replace(made, origins=origins)])

    assert [one.name for one in found.named] == ["calculator", "run_python"]


@virtually
async def test_a_tool_is_a_source_where_nothing_else_says_what_it_gave():
    store, objective = await run_once()
    (made,) = await store.results(objective.id)
    origins = ("tool:shop_price", "tool:run_python", "tool:list_files", "tool:web_search", "tool:")

    found = await trace_sources(store, [replace(made, origins=(*origins, "search:brave"))])

    assert [(one.kind, one.name) for one in found.named] == [
        (SourceKind.TOOL, "shop_price"),
        (SourceKind.TOOL, "run_python"),
        (SourceKind.SEARCH, "brave"),
    ]
    assert "* used the tool shop\\_price (task 1)" in listed(found, "shop_price")


def test_the_section_says_where_when_and_for_which_tasks():
    named = [
        source(FLASK.url, task_ids=(2,), page=FLASK),
        source("notes/a b.md", kind=SourceKind.FILE, task_ids=(1, 2, 3)),
        source("brave", kind=SourceKind.SEARCH, task_ids=tuple(range(1, 12))),
        source("github:tea/pot", kind=SourceKind.SEARCH),
        source("pipeline:docs", kind=SourceKind.SEARCH),
    ]

    assert listed(Sources(named=named), f"It is BSD ({FLASK.url}).") == (
        "## Sources\n\n"
        "* Flask's licence: <https://flask.example/licence> "
        "(fetched 2026-11-22 12:00 UTC, sha256 abababababababab; task 2)\n"
        "* `notes/a b.md` (tasks 1, 2, 3)\n"
        "* asked brave (tasks 1, 2, 3, 4, 5 and 6 more)\n"
        "* asked github:tea/pot (task 1)\n"
        "* asked pipeline:docs (task 1)"
    )
    assert listed(Sources()) == ""


def test_of_many_sources_the_number_of_the_others_is_said():
    named = [source(f"{n}.md", kind=SourceKind.FILE) for n in range(12)]

    rows = listed(Sources(named=named, n_unnamed=3), most=10).split("\n")

    assert (len(rows), rows[-1]) == (13, "* and 5 more; look there")
    assert listed(Sources(named=named[:1], n_unnamed=3)).endswith("\n* and 3 more")


def test_nothing_that_a_page_calls_itself_does_anything_in_the_report():
    title = "</li><script>alert(1)</script> [x](javascript:y) # *b*\n## Stopped `q` \x1b[31m\u202e"
    page = replace(FLASK, title=title, url="https://a.example/<b>)%20\n[x](y)")
    named = [
        source(page.url, page=page),
        source("`a``b`\n# x", kind=SourceKind.FILE),
        source("## x", kind=SourceKind.SEARCH),
    ]

    text = listed(Sources(named=named), "See https://b.example/`*x*`.")
    html = render_html(text)

    assert text.count("\n* ") == 4 and "\x1b" not in text and "\u202e" not in text
    assert html.count("<h2>") == 1 and html.count("<li>") == 4
    assert not any(
        tag in html for tag in ("<script", "<em>", "<strong>Stopped", 'href="javascript')
    )
    assert 'href="https://a.example/%3Cb%3E)%20' in html


def test_an_address_of_the_answer_that_no_task_opened_is_named():
    sources = Sources(named=[source(FLASK.url, page=FLASK)])
    answer = (
        "BSD (https://flask.example/licence), see <https://FLASK.example/l#top>; also "
        "[MIT](https://made-up.example/x_(y)) and **https://made-up.example/z**."
    )

    assert find_unopened(sources, answer) == [
        "https://made-up.example/x_(y)",
        "https://made-up.example/z",
    ]
    assert "no task opened them:**\n\n* `https://made-up.example/x_(y)`\n" in listed(
        sources, answer
    )
    assert find_unopened(Sources(named=[source("a.md", kind=SourceKind.FILE)]), answer) == []


def test_an_observation_keeps_what_is_known_of_its_pages():
    seen = Observation(passage=Passage(text="x", origin="web:x", sources=("a",), pages=(FLASK,)))

    assert Observation.from_json(seen.to_json()) == seen
    old = json.dumps({"passage": {"text": "x", "origin": "web:x"}, "is_error": False})
    assert Observation.from_json(old).passage.pages == ()
