"""The file of a memory: what is added is there, whoever adds and whatever is cut off."""

import asyncio
import os
import stat
from dataclasses import replace

import pytest

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.memory.log import (
    MAX_SAID_CHARS,
    N_KEPT_FACTS,
    N_KEPT_TURNS,
    Fact,
    Summary,
    names_in,
    path_of,
    require_name,
)


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


async def test_a_change_that_a_kill_cut_off_loses_nothing_that_was_there(
    tmp_path, open_log, monkeypatch
):
    path = path_of(tmp_path, "tea")
    await add(open_log(path), 1)

    def die(file):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", die)
        with pytest.raises(KeyboardInterrupt):
            await add(open_log(path), 2)
    await add(open_log(path), 3)

    known = await open_log(path).read()
    assert [turn.question for turn in known.turns] == ["question 1", "question 3"]


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"[]", b"", b'{"id": "s3cret', b'{"turns": ["s3cret"]}']
)
async def test_a_damaged_file_is_one_error_that_shows_nothing_of_it_and_stays_as_it_is(
    tmp_path, open_log, body
):
    path = path_of(tmp_path, "tea")
    await add(open_log(path), 1)
    path.write_bytes(body)

    with pytest.raises(StoreUnusableError, match="the memory tea cannot be used") as raised:
        await add(open_log(path), 2)

    assert raised.value.why == "the file is damaged"
    assert "s3cret" not in str(raised.value) + raised.value.fix
    assert path.read_bytes() == body


async def test_a_forgotten_memory_is_gone_and_no_earlier_update_brings_it_back(tmp_path, open_log):
    path = path_of(tmp_path, "tea")
    log = open_log(path)
    await add(log, 1)
    before = (await log.read()).id

    assert await open_log(path).forget()
    await add(log, 2)
    summary = Summary(text="old", upto=1, origins=("model:m",))
    await log.change(lambda known: replace(known, summary=summary), to=before)

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
    await log.change(lambda known: replace(known, facts=(fact,), facts_upto=n), to=known.id)
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
    facts = tuple(
        Fact(entity=f"Oak {n}", text="It is tall.", turn=1, origins=("person",))
        for n in range(N_KEPT_FACTS + 50)
    )
    await log.change(lambda known: replace(known, facts=facts, facts_upto=1), to=known.id)
    await add(log, 2)

    assert (await log.read()).facts == facts[50:]


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
