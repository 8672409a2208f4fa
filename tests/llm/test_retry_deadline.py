"""The deadline of the calls to one server, on a clock that costs nothing."""

import asyncio

import pytest

from babyagi.llm.retry import N_DEADLINES, N_QUICK, Deadline
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
        async with deadline.waiting(count_heard, look):
            await asyncio.sleep(takes_s)
    except TimeoutError:
        came = False
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
async def test_the_next_call_has_a_deadline_that_fits_what_an_answer_needed():
    deadline = Deadline(FIRST_S)
    await call(deadline, 25.0)

    assert deadline.now_s == 30.0
    assert await call(deadline, 29.0, lives=False) == (29.0, True)


@virtually
async def test_without_a_sign_of_life_the_deadline_doubles_only_once_the_server_has_answered():
    deadline, n_late = Deadline(FIRST_S), 0
    while not (await call(deadline, 10 * FIRST_S, lives=False))[1]:
        n_late += 1
        assert deadline.next_s == 2 * deadline.now_s
        await call(deadline, 1.0)

    assert n_late == 4 and deadline.now_s == 16 * FIRST_S


@virtually
async def test_quick_answers_in_a_row_halve_a_deadline_down_to_that_of_the_settings():
    remembered: list[float] = []
    deadline = Deadline(FIRST_S, known_s=8 * FIRST_S, remember=remembered.append)
    await call(deadline, 3 * FIRST_S)
    for _ in range(4 * N_QUICK):
        await call(deadline, 1.0)

    assert remembered == [4 * FIRST_S, 2 * FIRST_S, FIRST_S]
    assert Deadline(FIRST_S, known_s=1.0).now_s == FIRST_S


@virtually
async def test_a_call_that_is_cancelled_says_nothing_about_the_server():
    deadline = Deadline(FIRST_S)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5.0):
            await call(deadline, 100.0)

    assert deadline.now_s == deadline.next_s == FIRST_S
