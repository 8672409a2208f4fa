"""Every fault of the table over real sockets, in a small run that has to come through: at the
execution agent, every second one at one other agent in turn, and at the embedder.

`ALL_FAULTS=1 pytest tests/system/test_llm_faults.py` tries every fault at every agent. `python -m
tests.system.test_llm_faults` prints how many are tried where, and which cannot strike and why.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from babyagi import events
from babyagi.agents.prompting import say
from babyagi.errors import BabyagiError, CredentialsError, ModelRejectedError
from babyagi.files.folder import Folder
from babyagi.index.hashing import HashEmbedder
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.embeddings import OpenAIEmbedder
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.llm.retry import N_DEADLINES, PROBE_EVERY_S
from babyagi.tasks import ObjectiveStatus, TaskStatus
from babyagi.tools.files import build_file_tools
from support.local_server import Answer, LocalServer, agree_answer, applies_to, fault_named
from support.prompts import block_in, results_in
from tests.patience import SkippingWorld, run_skipping

TABLE = json.loads((Path(__file__).parent.parent / "data" / "llm_faults.json").read_text())["table"]
NOT_STREAMED = [row for row in TABLE if not row["stream"]]
CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"
AGENTS = ("execution", "creation", "prioritization", "check", "report")
WITH_SCHEMA = ("creation", "prioritization", "check")
TIMEOUT_S = 2.0
# A living server that is silent gets so long after one call was waited for in vain.
LONGEST_S = N_DEADLINES * (2 * N_DEADLINES * TIMEOUT_S) + 2
OUTAGE_S = 60.0
# after the first as many as are worth an order
NAMES = ["Begin", "One", "Two"]
FOUND = " ".join(
    f"Limit {number} stands in document {7 * number} and is {31 * number} tasks."
    for number in range(1, 16)
)

# What a fault means where its row is about something that the agent does not ask for.
NO_TOOLS_ASKED = {
    row["fault"]: "REASK" for row in NOT_STREAMED if row["fault"].startswith("tool-")
} | {"legacy-function-call": "REASK"}


def answer(request):
    user = next(message.text for message in request.messages if message.speaker is Speaker.USER)
    match request.agent:
        case "execution":
            has_looked = not request.tools or any(
                message.speaker is Speaker.TOOL for message in request.messages
            )
            is_labelled = any(
                "Final Answer: the whole answer" in message.text for message in request.messages
            )
            found = f"For {block_in(user, 'task')}: {FOUND}"
            said = f"Final Answer: {found}" if is_labelled else found
            if has_looked or "2: One" not in block_in(user, "task"):
                return Answer(text=said)
            return Answer(tool_calls=(ToolCall(id="c", name="list_files", arguments="{}"),))
        case "creation":
            is_first = "Begin" in [name for _, name, _ in results_in(user)]
            return Answer(
                text=json.dumps(
                    {
                        "tasks": [{"name": name, "after": []} for name in NAMES[1:] if is_first],
                        "objective_met": False,
                    }
                )
            )
        case "prioritization":
            return Answer(text='{"order": [2, 3]}')
        case "check":
            return agree_answer(request)
    return Answer(text="The answer, from what was found.")


def is_about_one(record):
    """Whether the request is about the task One, where it is about tasks."""
    if record.agent not in ("execution", "creation"):
        return True
    user = record.body["messages"][1]["content"]
    return (
        "2: One" in block_in(user, "task")
        if record.agent == "execution"
        else "One" in [name for _, name, _ in results_in(user)]
    )


class Stage:
    """A small run on a server, and what came of it."""

    def __init__(self, server, folder, stack, *, embedder=None):
        endpoint = Endpoint(
            base_url=server.base_url,
            api_key="sk-x",
            timeout_s=TIMEOUT_S,
            sleep=asyncio.sleep,
            random=lambda: 0.5,
        )
        stack.push_async_callback(endpoint.close)
        self.server, self.endpoint = server, endpoint

        async def inline(work, *args):
            return work(*args)

        self.world = SkippingWorld(
            model=self.open_model(endpoint),
            tools=build_file_tools(Folder(folder), offload=inline),
            concurrency=1,
            embedder=OpenAIEmbedder("text-embedding-3-small", endpoint)
            if embedder
            else HashEmbedder(),
        )
        self.error = None
        self.hits = []

    @staticmethod
    def open_model(endpoint):
        return OpenAIModel("some-model", endpoint, temperature=0.2, dialect="chat")

    def strike(self, fault, agent, *, n=None, until_s=None):
        """Let requests of the agent about the task One meet the fault: all, the first `n`, or those
        before `until_s`."""

        def matches(record):
            is_hit = record.agent == agent and is_about_one(record)
            is_hit = (
                is_hit
                and (n is None or len(self.hits) < n)
                and (until_s is None or self.hits_since() < until_s)
            )
            if is_hit:
                self.hits.append(record)
            return is_hit

        self.server.fail_when(matches, fault)

    def hits_since(self):
        return asyncio.get_running_loop().time() - self.hits[0].at if self.hits else 0.0

    async def run(self):
        self.objective = await self.world.start()
        await self.go_on()

    async def go_on(self):
        self.error = None
        try:
            async with asyncio.timeout(86_400):
                await self.world.open_worker(self.objective).run(self.objective.id)
        except BabyagiError as error:
            self.error = error
        store = self.world.store
        self.objective = await store.objective(self.objective.id)
        self.tasks = {task.name: task for task in await store.tasks(self.objective.id)}
        self.events = await store.events(self.objective.id, limit=100_000)
        self.results = await store.results(self.objective.id)
        self.kinds = Counter(event.kind for event in self.events)

    def check_whatever_the_fault(self):
        """Nothing is lost, the ledger has at least what the server billed, no call took longer than
        its deadline and two seconds."""
        assert set(self.tasks) == set(NAMES) or (self.error and set(self.tasks) == {"Begin"})
        finished = [
            task.id
            for task in self.tasks.values()
            if task.status in (TaskStatus.DONE, TaskStatus.RECORDED)
        ]
        assert sorted(result.task_id for result in self.results) == sorted(finished)
        billed = [record for record in self.server.requests if record.prompt_tokens]
        assert self.objective.usage.calls >= len(billed)
        sizes = [
            record.prompt_tokens + record.completion_tokens
            for record in billed
            if record.fault != "200-50mb"
        ]
        assert self.objective.usage.tokens >= sum(sizes)
        assert self.objective.held.calls == 0
        assert not any(record.body.get("stream") for record in self.server.requests)
        intended = {}
        for event in self.events:
            at = (event.data.get("owner"), event.data.get("key"))
            if event.kind == events.STEP_INTENDED:
                intended[at] = event.at
            elif event.kind in (events.STEP_RECORDED, events.STEP_ABANDONED) and at in intended:
                assert (event.at - intended.pop(at)).total_seconds() <= LONGEST_S
        if self.error is None:
            assert self.objective.status is ObjectiveStatus.ENDED and self.objective.has_report

    def check_stopped_by_its_count(self):
        """No call began after an answer that cost more than was reserved for it."""
        assert self.error is None and self.objective.has_report
        kinds = [event.kind for event in self.events]
        assert (
            events.STEP_OVERSPENT in kinds
            and events.STEP_INTENDED not in kinds[kinds.index(events.STEP_OVERSPENT) :]
        )

    def check_all_done(self):
        assert self.error is None
        assert [(task.status, task.failures) for task in self.tasks.values()] == [
            (TaskStatus.DONE, 0)
        ] * len(NAMES)
        assert self.objective.stop_reason == "finished"


def on_stage(folder, work, *, embedder=False):
    async def run():
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(LocalServer(answer, slow_body_s=20.0))
            stage = Stage(server, folder, stack, embedder=embedder)
            await work(stage)
            stage.check_whatever_the_fault()

    run_skipping(run())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.md").write_text("Limits are 50 tasks.\n")
    return tmp_path


def can_strike(row, path):
    fault = fault_named(row["fault"])
    return fault is not None and applies_to(fault, path)


def why_not(row, agent):
    """Why the fault cannot strike there; empty where it can."""
    name = row["fault"]
    if row["stream"]:
        return "no answer is asked for as a stream"
    if not can_strike(row, EMBEDDINGS if agent == "embedding" else CHAT):
        return "it is about what only a chat's reply has, or its request"
    if name == "400-tools-ollama" and agent != "execution":
        return "no tools are offered"
    if name == "400-response-format" and agent not in WITH_SCHEMA:
        return "no schema is sent"
    return ""


def right_of(row, agent):
    """The action that is right at this agent, None where the fault cannot strike it."""
    name = row["fault"]
    if why_not(row, agent):
        return None
    if name == "tool-200":
        return "ACCEPT" if agent == "execution" else "REASK"
    return row["right"] if agent == "execution" else NO_TOOLS_ASKED.get(name, row["right"])


def cases(*actions):
    return [
        pytest.param(row, agent, id=f"{row['fault']}-{agent}")
        for row in NOT_STREAMED
        for agent in AGENTS
        if right_of(row, agent) in actions
    ]


def in_turn(*actions):
    """Of the cases those at the execution agent, and every second fault at one other agent, these
    in turn."""
    every = cases(*actions)
    if "ALL_FAULTS" in os.environ:
        return every
    others: dict[str, list[ParameterSet]] = {}
    for case in every:
        row, agent = case.values
        if agent != "execution":
            others.setdefault(row["fault"], []).append(case)
    chosen = [
        agents[number % len(agents)]
        for number, agents in enumerate(others.values())
        if number % 2 == 0
    ]
    return [case for case in every if case.values[1] == "execution"] + chosen


ABOVE_THE_RESERVATION = ("usage-huge",)  # taken, and the last one
TRIED_ACTIONS = tuple(
    "ACCEPT WAIT REASK MORE FAILTASK SHRINK DEGRADE STOP CAP RETRY BREAKER".split()
)
EMBEDDING_ROWS = [row for row in TABLE if not why_not(row, "embedding")]


def test_every_fault_is_tried_at_every_agent_and_at_the_embedder_or_cannot_strike_there():
    tried = {(case.values[0]["fault"], case.values[1]) for case in cases(*TRIED_ACTIONS)}
    tried |= {(row["fault"], "embedding") for row in EMBEDDING_ROWS}
    places = [(row, agent) for row in TABLE for agent in (*AGENTS, "embedding")]

    assert len(TABLE) == 107
    assert {(row["fault"], agent) for row, agent in places if not why_not(row, agent)} == tried
    untried = {row["fault"] for row in TABLE} - {fault for fault, _ in tried}
    assert untried == {row["fault"] for row in TABLE if row["stream"]} and len(untried) == 18


@pytest.mark.parametrize(("row", "agent"), in_turn("ACCEPT"))
def test_what_is_an_answer_is_taken_with_the_first_request(folder, row, agent):
    async def work(stage):
        await stage.run()
        baseline = Counter(record.agent for record in stage.server.requests)
        stage.server.reset()
        stage.strike(row["fault"], agent, n=1)
        await stage.run()
        if row["fault"] in ABOVE_THE_RESERVATION:
            stage.check_stopped_by_its_count()
            return
        stage.check_all_done()
        assert len(stage.hits) == 1
        assert Counter(record.agent for record in stage.server.requests) == baseline

    on_stage(folder, work)


@pytest.mark.parametrize(("row", "agent"), in_turn("REASK", "MORE", "SHRINK", "DEGRADE"))
def test_an_error_that_one_more_request_can_mend_is_mended_by_it(folder, row, agent):
    is_parameter = row["right"] == "DEGRADE"

    async def work(stage):
        stage.strike(row["fault"], agent, n=None if is_parameter else 1)
        await stage.run()
        stage.check_all_done()
        assert stage.kinds[events.MODEL_UNAVAILABLE] == 0

    on_stage(folder, work)


@pytest.mark.parametrize(("row", "agent"), in_turn("REASK", "MORE", "SHRINK", "FAILTASK", "CAP"))
def test_what_cannot_be_mended_ends_one_task_with_the_reason_and_the_others_go_on(
    folder, row, agent
):
    async def work(stage):
        stage.strike(row["fault"], agent)
        await stage.run()
        assert stage.error is None
        struck = stage.tasks["One"]
        # what was received of the last try's reply is kept, and marked
        is_kept = row["fault"] == "finish-length" and agent == "execution"
        n_tries = max(
            1,
            stage.kinds[events.OBJECTIVE_CHECKED]
            if agent == "check"
            else struck.failures + is_kept,
        )
        asked_ever = (
            3 if NO_TOOLS_ASKED.get(row["fault"]) and agent != "execution" else row["max_requests"]
        )
        assert (
            1
            <= len(stage.hits)
            <= (
                asked_ever
                if row["right"] == "CAP" and agent == "execution"
                else asked_ever * n_tries
            )
        )
        if is_kept:
            (kept,) = await stage.world.store.results(stage.objective.id, task_ids=[struck.id])
            assert struck.status is TaskStatus.DONE and say("unusual") in kept.text
        elif agent == "execution":
            assert struck.status is TaskStatus.DEAD and struck.error
            if row["right"] == "SHRINK":
                assert "context" in struck.error
        else:
            assert struck.status is TaskStatus.DONE
        assert bool(struck.error) == (struck.status is TaskStatus.DEAD or is_kept)
        failed = [
            event.data["task_ids"] for event in stage.events if event.kind == events.PLAN_FAILED
        ]
        assert [struck.id in task_ids for task_ids in failed] == (
            [True] if agent == "creation" else []
        )
        others = [task for name, task in stage.tasks.items() if name != "One"]
        assert [(task.status, task.failures) for task in others] == [(TaskStatus.DONE, 0)] * (
            len(NAMES) - 1
        )
        assert stage.objective.stop_reason == ("unmet" if agent == "check" else "finished")

    on_stage(folder, work)


@pytest.mark.parametrize(("row", "agent"), in_turn("WAIT"))
def test_an_answer_that_comes_late_from_a_living_server_is_used(folder, row, agent):
    async def work(stage):
        stage.strike(row["fault"], agent)
        await stage.run()
        assert stage.error is None
        assert 1 <= len(stage.hits) <= row["max_requests"]
        assert {task.status for task in stage.tasks.values()} == {TaskStatus.DONE}
        assert stage.objective.stop_reason == "finished"

    on_stage(folder, work)


@pytest.mark.parametrize(("row", "agent"), in_turn("STOP"))
def test_an_error_that_a_person_must_mend_stops_the_run_with_one_request_and_the_run_goes_on_later(
    folder, row, agent
):
    async def work(stage):
        stage.strike(row["fault"], agent)
        await stage.run()
        assert len(stage.hits) == 1 and stage.server.strayed == []
        if agent != "report":  # the report is written without a model
            assert isinstance(
                stage.error, CredentialsError if row["fault"] == "401" else ModelRejectedError
            )
            assert stage.error.what and stage.error.fix
            assert {task.status for task in stage.tasks.values()} <= {
                TaskStatus.QUEUED,
                TaskStatus.RECORDED,
                TaskStatus.DONE,
            }
            stage.check_whatever_the_fault()
            stage.server.reset()
            stage.world.model = stage.open_model(stage.endpoint)  # started again by a person
            await stage.go_on()
        stage.check_all_done()

    on_stage(folder, work)


@pytest.mark.parametrize(("row", "agent"), in_turn("RETRY", "BREAKER"))
def test_an_outage_is_waited_for_and_fails_nothing(folder, row, agent):
    async def work(stage):
        stage.strike(row["fault"], agent, until_s=OUTAGE_S)
        await stage.run()
        stage.check_all_done()
        n_waits = stage.kinds[events.MODEL_UNAVAILABLE]
        assert len(stage.hits) <= row["max_requests"] * (n_waits + 1)
        if row["right"] == "BREAKER":
            assert len(stage.hits) <= 5 + OUTAGE_S / PROBE_EVERY_S
        if not n_waits:  # an outage longer than a report waits ends in one from the results
            assert agent == "report"
            report = await stage.world.store.report(stage.objective.id)
            assert "No summary was written" in report

    on_stage(folder, work)


@pytest.mark.parametrize("row", EMBEDDING_ROWS, ids=lambda row: row["fault"])
def test_no_trouble_with_the_embedder_stops_the_loop(folder, row):
    async def work(stage):
        stage.strike(row["fault"], "embedding")
        await stage.run()
        if row["fault"] in ABOVE_THE_RESERVATION:
            stage.check_stopped_by_its_count()
            return
        stage.check_all_done()
        assert stage.hits
        assert len(stage.hits) == 1 or row["right"] != "STOP"
        if row["fault"] == "c-hang":
            assert stage.endpoint.deadline.now_s == TIMEOUT_S

    on_stage(folder, work, embedder=True)


def show_places():
    """Print what is tried where, and what cannot strike."""
    counts = Counter((right_of(row, agent), agent) for row in TABLE for agent in AGENTS)
    for action in TRIED_ACTIONS:
        print(f"{action:9}", *(f"{agent} {counts[action, agent]}" for agent in AGENTS), sep="  ")
    print(f"at the embedder: {len(EMBEDDING_ROWS)}")
    faults_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in TABLE:
        for agent in (*AGENTS, "embedding"):
            if why := why_not(row, agent):
                faults_by_reason.setdefault((why, agent), []).append(row["fault"])
    for (why, agent), faults in sorted(faults_by_reason.items()):
        print(
            f"cannot strike at {agent}, because {why}: {len(faults)}: {', '.join(sorted(faults))}"
        )


if __name__ == "__main__":
    show_places()
