"""The deadline of the calls to one server, on a clock that costs nothing."""

import asyncio

import pytest

from babyagi.llm.retry import N_DEADLINES, Deadline, SilenceError
from support.virtual import virtually

FIRST_S = 10.0


async def call(deadline, takes_s, *, lives=True, piece_every_s=None):
    """Wait for an answer that takes so long; return how long it was waited for, and whether it
    came. With `piece_every_s`, pieces of it come so often."""
    began_s = asyncio.get_running_loop().time()

    def count_heard():
        passed_s = asyncio.get_running_loop().time() - began_s
        return int(passed_s / piece_every_s) if piece_every_s else 0

    async def look():
        return lives

    came = True
    try:
        await deadline.wait_for(asyncio.sleep(takes_s), count_heard=count_heard, lives=look)
    except SilenceError as silence:
        came = False
        assert silence.server_lives is lives
        assert silence.waited_s == asyncio.get_running_loop().time() - began_s
    return asyncio.get_running_loop().time() - began_s, came


@pytest.mark.parametrize(
    ("takes_s", "more", "waited_s", "came"),
    [
        (9.0, {"lives": False}, 9.0, True),
        (25.0, {"lives": False}, FIRST_S, False),
        (25.0, {}, 25.0, True),
        (100.0, {}, N_DEADLINES * FIRST_S, False),
        (100.0, {"lives": False, "piece_every_s": 9.0}, 100.0, True),
    ],
    ids=["in time", "nobody lives", "late and used", "lost", "in pieces"],
)
@virtually
async def test_a_call_is_waited_for_while_pieces_come_or_the_server_lives(
    takes_s, more, waited_s, came
):
    assert await call(Deadline(FIRST_S), takes_s, **more) == (waited_s, came)


@virtually
async def test_a_vain_wait_for_a_living_server_doubles_the_next_deadline():
    deadline = Deadline(FIRST_S)
    await call(deadline, 100.0)

    assert deadline.now_s == 2 * N_DEADLINES * FIRST_S
    assert await call(deadline, 79.0, lives=False) == (79.0, True)


@virtually
async def test_without_a_sign_of_life_the_deadline_doubles_only_once_the_server_has_answered():
    deadline, n_late = Deadline(FIRST_S), 0
    while not (await call(deadline, 10 * FIRST_S, lives=False))[1]:
        n_late += 1
        assert deadline.next_s == 2 * deadline.now_s
        await call(deadline, 1.0)

    assert n_late == 4 and deadline.now_s == 16 * FIRST_S


@virtually
async def test_an_answer_that_comes_while_the_server_is_asked_whether_it_lives_is_used():
    async def look():
        await asyncio.sleep(3.0)
        return False

    call = asyncio.sleep(FIRST_S + 1.0, "an answer")

    assert await Deadline(FIRST_S).wait_for(call, count_heard=int, lives=look) == "an answer"


@virtually
async def test_a_call_that_is_cancelled_ends_and_says_nothing_about_the_server():
    deadline, ends = Deadline(FIRST_S), []

    async def work():
        try:
            await asyncio.sleep(100.0)
        finally:
            ends.append("the call")

    async def look():
        return True

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5.0):
            await deadline.wait_for(work(), count_heard=int, lives=look)

    assert ends == ["the call"] and deadline.now_s == deadline.next_s == FIRST_S
