import pytest

from babyagi.cli.live import Teller, describe_call, first_words
from babyagi.inbox import write_request
from babyagi.tasks import Passage, Step, StepState
from babyagi.taskstore.port import Kept
from babyagi.tools.base import Observation
from tests.cli import homes, samples


async def tell_all(store, objective):
    teller = Teller(store, objective.id)
    told = await teller.tell(await store.events(objective.id))
    return [one.text for one in told], teller


async def test_a_result_is_told_by_what_it_found(store, objective):
    await homes.finish_a_task(store, objective.id)

    texts, _ = await tell_all(store, objective)

    assert texts == ["found: limits.md:3 says fifty tasks.", "brought 2 new tasks"]


async def test_a_question_and_a_call_are_told_with_their_words(store, objective):
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    gave = Observation(passage=Passage(text="# a\n" * 10, origin="file:a.md"))
    await store.put_step(
        claim.fence,
        kept=Kept(key="1/execute/1/tool/1", kind="tool", request_hash="", output=gave.to_json()),
    )
    await store.park_task(
        claim.fence,
        key="1/execute/2/tool/1",
        kind="question",
        request=write_request("ask_user", {"question": "Which day?"}),
    )

    texts, teller = await tell_all(store, objective)

    assert [text for text in texts if "day" in text or "gave" in text] == [
        "file:a.md gave 40 characters",
        "asks: Which day?",
    ]
    assert teller.doing == {}


async def test_the_last_call_of_a_running_task_is_shown_as_what_it_does_now(store, objective):
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    fault = Observation(
        passage=Passage(text="no such file", origin="tool:read_file"), is_error=True
    )
    await store.put_step(
        claim.fence,
        kept=Kept(key="1/execute/1/tool/1", kind="tool", request_hash="", output=fault.to_json()),
    )

    _, teller = await tell_all(store, objective)

    assert teller.doing == {1: "tool:read_file failed: no such file"}


def step(arguments, *, output=None):
    return Step(
        objective_id=1,
        owner="task:1",
        key="k",
        kind="tool",
        request_hash="",
        state=StepState.DONE,
        output=output,
        request=write_request("search", arguments),
        created_at=samples.START,
    )


def test_a_call_is_told_with_its_name_and_short_arguments():
    gave = Observation(passage=Passage(text="x" * 3120, origin="tool:search"))
    call = step({"query": "tea", "n": 3}, output=gave.to_json())
    assert describe_call(call) == 'search(n=3, query="tea") gave 3,120 characters'

    long = describe_call(step({"query": "x" * 10_000_000}))
    assert len(long) < 120

    hostile = describe_call(step({samples.HOSTILE: samples.HOSTILE}))
    assert hostile.isprintable()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Head\n\nFifty tasks.\nMore.", "Fifty tasks. More."),
        ("# Head", "Head"),
        ("", ""),
        ("a " * 1000, ("a " * 150)[:299].rstrip() + "…"),
    ],
)
def test_a_finding_is_one_line_without_headings(text, said):
    assert first_words(text) == said
