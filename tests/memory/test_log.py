"""The lines of a memory: what is added is there, whoever adds and whatever is cut off."""

import asyncio
import json
import stat

import pytest

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.llm.port import Completion
from babyagi.memory.log import (
    MAX_SAID_CHARS,
    N_KEPT_FACTS,
    N_KEPT_TURNS,
    Fact,
    names_in,
    parse_lines,
    path_of,
    require_name,
    write_fact,
)
from babyagi.tasks import Usage


async def add(log, n, **more):
    await log.add_turn(f"question {n}", f"answer {n}", key=f"k{n}", **more)


async def test_a_turn_is_kept_with_what_the_person_said_and_what_the_answer_was_made_from(
    tmp_path, open_log
):
    path = path_of(tmp_path, "tea")
    await open_log(path).add_turn(
        "What is tea?", "A leaf.", key="a", made_from=["model:m", "file:tea.md"]
    )

    (turn,) = (await open_log(path).read()).turns

    assert (turn.n, turn.question, turn.answer) == (1, "What is tea?", "A leaf.")
    assert (turn.asked_from, turn.made_from) == (("person",), ("model:m", "file:tea.md"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert names_in(tmp_path) == ["tea"]


async def test_a_turn_is_added_once_for_each_key(open_log):
    log = open_log()
    for _ in range(3):
        await add(log, 1)

    assert [turn.n for turn in (await log.read()).turns] == [1]


@pytest.mark.parametrize("is_file", [True, False])
async def test_many_who_add_at_once_lose_no_turn_and_no_number_is_there_twice(
    tmp_path, open_log, is_file
):
    path = path_of(tmp_path, "tea") if is_file else None
    one = open_log(path)
    logs = [open_log(path) if is_file else one for _ in range(8)]

    await asyncio.gather(*(add(log, 10 * n + m) for n, log in enumerate(logs) for m in range(5)))

    turns = (await one.read()).turns
    assert [turn.n for turn in turns] == list(range(1, 41))
    assert len({turn.key for turn in turns}) == 40


async def test_a_line_that_a_kill_cut_off_loses_no_other(tmp_path, open_log):
    path = path_of(tmp_path, "tea")
    await add(open_log(path), 1)
    with path.open("ab") as file:
        file.write(b'{"kind": "turn", "n": 2, "key": "k2", "question": "wh')

    await add(open_log(path), 3)

    known = await open_log(path).read()
    assert [turn.question for turn in known.turns] == ["question 1", "question 3"]
    assert known.n_damaged == 1


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[]", b"null", b"{}", b'{"kind": "turn"}', b'{"kind": "later"}', b'"turn"'],
)
async def test_a_damaged_line_is_counted_and_passed_over(tmp_path, open_log, line):
    path = path_of(tmp_path, "tea")
    await add(open_log(path), 1)
    with path.open("ab") as file:
        file.write(line + b"\n")

    known = await open_log(path).read()

    assert (len(known.turns), known.n_damaged) == (1, 1)


async def test_a_forgotten_memory_is_gone_and_no_earlier_update_brings_it_back(tmp_path, open_log):
    path = path_of(tmp_path, "tea")
    log = open_log(path)
    await add(log, 1)
    before = (await log.read()).id

    assert await open_log(path).forget()
    await add(log, 2)
    summary = {"kind": "summary", "text": "old", "upto": 1, "origins": ["model:m"]}
    await log.add(summary, to=before)

    known = await log.read()
    assert [turn.question for turn in known.turns] == ["question 2"]
    assert known.summary.text == "" and known.id != before
    assert "question 1" not in path.read_text("utf-8")
    assert await log.forget() and not await log.forget()


@pytest.mark.thorough
async def test_a_long_memory_is_shortened_and_says_the_same(tmp_path, open_log, monkeypatch):
    path = path_of(tmp_path, "tea")
    log = open_log(path)
    monkeypatch.setattr("babyagi.memory.log.MAX_BYTES", 20_000)
    n = N_KEPT_TURNS + 40
    for at in range(1, n + 1):
        await add(log, at)
    known = await log.read()
    fact = Fact(entity="Oak", text="It is tall.", turn=n, origins=("person",))
    await log.add({"kind": "facts", "facts": [write_fact(fact)], "upto": n}, to=known.id)
    for at in range(n + 1, n + 200):
        await add(log, at)

    known = await log.read()

    assert len(known.turns) < n + 200 - 1 and known.last == n + 199
    assert (known.facts, known.facts_upto) == ((fact,), n)
    # nothing that no fact was taken from yet is lost
    assert {turn.n for turn in known.turns} >= set(range(n + 1, n + 200))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_of_very_many_facts_the_newest_are_kept(tmp_path, open_log, monkeypatch):
    path = path_of(tmp_path, "tea")
    log = open_log(path)
    monkeypatch.setattr("babyagi.memory.log.MAX_BYTES", 20_000)
    await add(log, 1)
    known = await log.read()
    facts = [
        Fact(entity=f"Oak {n}", text="It is tall.", turn=1, origins=("person",))
        for n in range(N_KEPT_FACTS + 50)
    ]
    await log.add({"kind": "facts", "facts": [*map(write_fact, facts)], "upto": 1}, to=known.id)
    await add(log, 2)

    assert (await log.read()).facts == tuple(facts[50:])


async def test_what_the_replies_took_is_summed_and_survives_the_shortening(open_log, monkeypatch):
    log = open_log()
    await add(log, 1)
    usage = Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost_usd=0.5)
    completion = Completion(text="x", model="m", usage=usage)
    to = (await log.read()).id
    for n in (1, 2):
        record = {"kind": "completion", "path": f"p{n}", "output": completion.to_json()}
        await log.add(record, to=to)
        summary = {"kind": "summary", "text": "s", "upto": 1, "origins": []}
        await log.add(summary, to=to)
    before = await log.read()

    monkeypatch.setattr("babyagi.memory.log.MAX_BYTES", 1)
    await add(log, 2)

    assert before.used == usage + usage
    assert (await log.read()).used == before.used


async def test_what_is_said_is_bounded(open_log):
    log = open_log()
    await log.add_turn("q" * 20_000, "\x1b[31m" + "a" * 20_000, key="a")

    (turn,) = (await log.read()).turns

    assert len(turn.question) < MAX_SAID_CHARS + 50 and "cut: 12000 more" in turn.question
    assert "\x1b" not in turn.answer


async def test_only_one_update_is_made_at_once(tmp_path, open_log):
    path = path_of(tmp_path, "tea")
    for one, other in [(open_log(path), open_log(path)), (log := open_log(), log)]:
        with one.updating() as first, other.updating() as second:
            assert (first, second) == (True, False)
        with other.updating() as third:
            assert third


@pytest.mark.parametrize("name", ["", "../tea", "a/b", ".tea", "tea\n", "x" * 65, "täh", "-tea"])
def test_a_name_that_is_no_plain_word_is_refused(name):
    with pytest.raises(SettingsError, match="1 to 64 letters"):
        require_name(name)


async def test_a_file_that_cannot_be_used_is_one_error(tmp_path, open_log):
    path = path_of(tmp_path, "tea")
    path.mkdir(parents=True)

    with pytest.raises(StoreUnusableError, match="the memory tea cannot be used"):
        await open_log(path).read()


def test_a_completion_is_there_until_something_was_made_of_it():
    completion = Completion(text="a summary", model="m", usage=Usage(calls=1))
    lines = [
        {"kind": "memory", "v": 1, "id": "x"},
        {"kind": "completion", "path": "summary/1-3", "output": completion.to_json()},
        {"kind": "summary", "text": "a summary", "upto": 3, "origins": ["model:m"]},
    ]
    body = [json.dumps(line).encode() + b"\n" for line in lines]

    assert parse_lines(b"".join(body[:2])).completions == {"summary/1-3": completion}
    assert parse_lines(b"".join(body)).completions == {}
