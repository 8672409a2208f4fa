import asyncio
from contextlib import asynccontextmanager

import pytest

from babyagi import events
from babyagi.errors import (
    CredentialsError,
    LimitReachedError,
    MalformedReplyError,
    ModelRejectedError,
    ModelUnavailableError,
    OverdueError,
    RequestRefusedError,
    SettingsError,
)
from babyagi.inbox import QUESTION, Decision, decide, write_request
from babyagi.reporting.report import load_report
from babyagi.tasks import Limits, ObjectiveStatus, Role, StopReason, TaskStatus
from babyagi.verbs.actions import serving
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import PARTIAL_S, Pace, Patience
from support.scripted import ScriptedModel, is_probe
from support.virtual import VirtualWorld, run_virtually
from support.workers import join
from tests.taskstore.contract import make_worker
from tests.test_loop import Script, finished_in, propose, quote_two, system_of, task_of

pytestmark = pytest.mark.thorough  # hours of outages and waits, on a clock that skips them

NAMES = ("glacier", "harbour", "orchard", "lantern", "monsoon", "quarry", "saffron", "telegraph")


class Crew(VirtualWorld):
    """A world whose worker says what hinders it. `lacking` are the objectives that it has no folder
    for."""

    def open_crew(self, *, concurrency=4):
        self.lacking: set[int] = set()
        self.told: list[str] = []

        def open_loop(objective, gate):
            if objective.id in self.lacking:
                raise SettingsError("there is no folder here", why="it is elsewhere")
            return self.open_loop(objective, gate)

        runtime = Runtime(
            identity=make_worker("me"),
            sleep=self.sleep,
            random=lambda: 0.0,
            new_id=lambda: "me-again",
            tell=self.told.append,
        )
        return WorkerLoop(
            self.store, open_loop, pace=Pace(concurrency=concurrency), runtime=runtime
        )

    async def blockers(self):
        return {
            one.objective_id: one.blocked_reason
            for worker in await self.store.workers()
            for one in worker.joined
            if one.blocked_reason
        }

    async def until_over(self, *objectives):
        async with asyncio.timeout(3600):
            for objective in objectives:
                while not (await self.store.objective(objective.id)).has_report:
                    await asyncio.sleep(0.1)


@asynccontextmanager
async def serving_all(worker):
    task = asyncio.ensure_future(worker.serve_all())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_worker_that_lacks_something_is_blocked_for_that_objective_only():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        worker = world.open_crew()
        first, second = await world.start(), await world.start()
        world.lacking.add(first.id)
        async with serving_all(worker):
            await world.until_over(second)
            assert await world.blockers() == {first.id: "there is no folder here (it is elsewhere)"}
            await asyncio.sleep(200)
            assert (await world.store.task(first.id, 1)).claim_no == 0
            assert len(world.told) == 1
            world.lacking.clear()
            await world.until_over(first)
        assert world.told[1:] == [f"this worker works on objective {first.id} again"]
        assert await world.store.workers() == []

    run_virtually(live())


def test_a_key_that_is_refused_hinders_until_it_is_mended_and_fails_no_task():
    answers = Script()
    is_refused = [True]

    def answer(prompt, role):
        return CredentialsError("the key is refused") if is_refused[0] else answers(prompt, role)

    async def live():
        world = Crew(model=ScriptedModel(answer))
        objective = await world.start()
        async with serving_all(world.open_crew()):
            await asyncio.sleep(300)
            assert list(await world.blockers()) == [objective.id]
            assert len(world.model.calls) < 8
            is_refused[0] = False
            await world.until_over(objective)
        ended = await world.store.objective(objective.id)
        assert (ended.stop_reason, (await world.store.task(objective.id, 1)).failures) == (
            StopReason.FINISHED,
            0,
        )

    run_virtually(live())


def test_a_run_that_nobody_is_patient_with_raises_what_a_person_mends():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        worker = world.open_crew()
        objective = await world.start()
        world.lacking.add(objective.id)
        with pytest.raises(SettingsError):
            await worker.run(objective.id)
        assert await world.store.workers() == []

    run_virtually(live())


AWAY = ModelUnavailableError("m cannot be reached", why="no such name")
UNREACHED = ModelUnavailableError("m cannot be reached", why="no such name")
UNREACHED.is_unreached = True


@pytest.mark.parametrize("n_answered", [0, 1])
def test_a_run_leaves_an_endpoint_that_it_never_reached_and_waits_for_one_that_it_did(n_answered):
    n_calls = 0

    def answer(prompt, role):
        nonlocal n_calls
        n_calls += 1
        return "So it is." if n_calls <= n_answered else AWAY if n_answered else UNREACHED

    async def live():
        world = VirtualWorld(model=ScriptedModel(answer, answers_probes=True))
        objective = await world.start(limits=Limits(max_time_s=300))
        run = world.open_worker().run(objective.id, patience=Patience(unreached_s=30.0))
        if n_answered:
            return (await run)[0].stop_reason, await world.store.tasks(objective.id)
        with pytest.raises(ModelRejectedError, match="cannot be reached") as raised:
            await run
        assert raised.value.fix.startswith(f"babyagi resume --objective {objective.id}")
        return None, await world.store.tasks(objective.id)

    stop_reason, tasks = run_virtually(live())

    assert stop_reason is (StopReason.LIMIT_TIME if n_answered else None)
    assert [task.failures for task in tasks if task.status is TaskStatus.QUEUED] == [0] * (
        1 - n_answered
    )


def test_a_joiner_waits_for_the_end_of_a_pause_and_a_run_leaves():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        objective = await world.start()
        await world.store.switch_objective(objective.id, to=ObjectiveStatus.PAUSED)
        left, _ = await world.open_crew().run(objective.id)
        assert left.status is ObjectiveStatus.PAUSED
        joining = asyncio.ensure_future(
            world.open_crew().run(objective.id, patience=Patience(with_pauses=True))
        )
        await asyncio.sleep(100)
        assert not joining.done()
        await world.store.switch_objective(objective.id, to=ObjectiveStatus.ACTIVE)
        ended, _ = await joining
        assert ended.has_report

    run_virtually(live())


def test_two_objectives_share_one_slot_in_turn():
    plans = {"Begin": propose(*NAMES)}

    class Slow(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            await asyncio.sleep(1)
            return await super().complete(prompt, role=role, on_text=on_text)

    async def live():
        world = Crew(model=Slow(Script(plans)))
        first, second = await world.start(), await world.start()
        async with serving_all(world.open_crew(concurrency=1)):
            await world.until_over(first, second)
        rows = [*await world.store.events(first.id), *await world.store.events(second.id)]
        claimed = sorted(
            (event.at, event.objective_id) for event in rows if event.kind == events.TASK_CLAIMED
        )
        order = [objective_id for _, objective_id in claimed]
        assert len(order) == 2 * (1 + len(NAMES))
        assert all(len(set(order[at : at + 3])) == 2 for at in range(len(order) - 2)), order

    run_virtually(live())


def test_only_the_end_of_own_work_causes_claims_that_may_find_nothing():
    class Counting:
        def __init__(self, store):
            self._store, self.n_claims, self.n_futile = store, 0, 0

        def __getattr__(self, name):
            return getattr(self._store, name)

        async def claim_next(self, *args, **options):
            seen, claim = await self._store.claim_next(*args, **options)
            self.n_claims += claim is not None
            self.n_futile += claim is None
            return seen, claim

    async def live():
        world = Crew(model=ScriptedModel(Script({"Begin": propose(*NAMES)})))
        world.store = counting = Counting(world.store)
        objective = await world.start()
        async with serving_all(world.open_crew(concurrency=8)):
            await world.until_over(objective)
        assert 1 + len(NAMES) < counting.n_claims
        assert counting.n_futile <= counting.n_claims
        assert (await counting.standing(objective.id)).counts[TaskStatus.DONE] == 1 + len(NAMES)
        assert len(world.model.asked(Role.EXECUTION)) == 1 + len(NAMES)

    run_virtually(live())


def test_an_objective_that_is_deleted_is_left_alone():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        worker = world.open_crew()
        objective = await world.start()
        world.lacking.add(objective.id)
        async with serving_all(worker):
            await asyncio.sleep(1)
            await world.store.delete_objective(objective.id)
            other = await world.start()
            await world.until_over(other)
            assert [
                one.objective_id
                for one in (await world.store.workers())[0].joined
                if one.objective_id == objective.id
            ] == []

    run_virtually(live())


class SlowModel(ScriptedModel):
    """The execution of `Slow` takes 100 s; the first call for anything that is not `Begin` finds
    the endpoint away."""

    async def complete(self, prompt, *, role, on_text=None):
        if role is Role.EXECUTION and not is_probe(prompt) and task_of(prompt).endswith(": Slow"):
            await asyncio.sleep(100)
        return await super().complete(prompt, role=role, on_text=on_text)


def test_after_an_outage_work_goes_on_beside_a_call_that_hangs_since_before_it():
    failures = [ModelUnavailableError("it is away")]
    script = Script({"Begin": propose("Slow", "Quick", "Quicker")})

    def answer(prompt, role):
        if role is Role.EXECUTION and task_of(prompt).endswith(": Quick") and failures:
            return failures.pop()
        return script(prompt, role)

    async def live():
        world = Crew(model=SlowModel(answer))
        objective = await world.start(initial_task="Begin")
        async with serving_all(world.open_crew(concurrency=3)):
            await asyncio.sleep(60)
            done = {
                task.name
                for task in await world.store.tasks(objective.id, statuses=[TaskStatus.DONE])
            }
            assert done == {"Begin", "Quick", "Quicker"}
            await world.until_over(objective)

    run_virtually(live())


REFUSED = ("Quick", "Quicker", "Quickest", "Quickly", "Quickset")


class Faulty(ScriptedModel):
    """Has an error for every task but `Begin`, and what `probed` says for a probe."""

    def __init__(self, error, *, probed):
        self.script = Script({"Begin": propose(*REFUSED)})
        self.error, self.probed, self.n_probes = error, probed, 0
        super().__init__(self.answer, answers_probes=True)

    def answer(self, prompt, role):
        if is_probe(prompt):
            self.n_probes += 1
            return self.probed
        is_struck = role is Role.EXECUTION and not task_of(prompt).endswith(": Begin")
        return self.error if is_struck and self.error is not None else self.script(prompt, role)


def run_faulty(model, **limits):
    async def live():
        world = VirtualWorld(model=model, pace=Pace(concurrency=1))
        ended = await world.run(limits=Limits(**limits))
        return (
            ended,
            await world.store.tasks(ended.id),
            [event.kind for event in await world.store.events(ended.id, limit=10_000)],
        )

    return run_virtually(live())


def test_what_three_tasks_in_a_row_meet_is_their_fault_where_the_model_answers_a_small_question():
    model = Faulty(RequestRefusedError("refused"), probed="ok")

    ended, tasks, _ = run_faulty(model)

    assert [task.status for task in tasks[1:]] == [TaskStatus.DEAD] * len(REFUSED)
    assert model.n_probes == 1
    # the first task was answered, and a check decides
    assert ended.stop_reason is not StopReason.FAILED


def test_an_endpoint_that_refuses_a_small_question_too_ends_the_objective_as_failed_with_its_reason():
    refusal = RequestRefusedError("refused (400)", why="bad thing")

    ended, tasks, _ = run_faulty(Faulty(refusal, probed=refusal))

    assert ended.stop_reason is StopReason.FAILED
    assert "refused (400) (bad thing)" in ended.stop_detail
    assert [task.status for task in tasks[1:]] == [TaskStatus.DEAD] * 2 + [TaskStatus.QUEUED] * 3
    assert [task.failures for task in tasks[3:]] == [0] * 3


def test_a_server_that_breaks_one_kind_of_call_for_ever_ends_the_objective_and_the_call_is_named():
    error = ModelUnavailableError("broken (500)", may_be_billed=True)

    ended, tasks, _ = run_faulty(Faulty(error, probed="ok"), max_time_s=7200)

    assert ended.stop_reason is StopReason.FAILED and ended.active_s < PARTIAL_S + 120
    assert "a test call of one word is answered, but not the call for task:" in ended.stop_detail
    assert "broken (500)" in ended.stop_detail
    assert {task.failures for task in tasks} == {0}


def test_what_three_tasks_in_a_row_meet_is_an_outage_where_nobody_answers_a_small_question():
    model = Faulty(MalformedReplyError("garbage"), probed=ModelUnavailableError("away"))

    ended, tasks, kinds = run_faulty(model, max_time_s=300)

    assert ended.stop_reason is StopReason.LIMIT_TIME and kinds.count(events.MODEL_UNAVAILABLE) > 3
    assert [task.failures for task in tasks[1:]] == [1, 1, 0, 0, 0]


def test_an_answer_that_never_ends_is_an_outage_where_nobody_answers_a_small_question_and_else_the_fault_of_the_task():
    overdue = OverdueError("it dripped", has_begun=True)

    down, tasks_down, _ = run_faulty(
        Faulty(overdue, probed=OverdueError("it dripped", has_begun=True)), max_time_s=300
    )
    _, tasks_up, _ = run_faulty(Faulty(overdue, probed="ok"), max_time_s=300)

    assert down.stop_reason is StopReason.LIMIT_TIME and {task.failures for task in tasks_down} == {
        0
    }
    assert [(task.status, task.failures) for task in tasks_up[1:]] == [(TaskStatus.DEAD, 2)] * len(
        REFUSED
    )


def test_after_a_late_answer_a_refused_small_question_is_an_outage_and_ends_no_objective():
    late = OverdueError("it dripped", has_begun=True)

    ended, tasks, _ = run_faulty(Faulty(late, probed=RequestRefusedError("busy")), max_time_s=300)

    assert ended.stop_reason is StopReason.LIMIT_TIME
    assert {task.failures for task in tasks} == {0}


def test_a_model_that_hangs_for_five_minutes_costs_small_questions_and_no_work():
    class Hanging(Faulty):
        async def complete(self, prompt, *, role, on_text=None):
            is_struck = is_probe(prompt) or (
                role is Role.EXECUTION and not task_of(prompt).endswith(": Begin")
            )
            if is_struck and 10 <= asyncio.get_running_loop().time() < 310:
                await asyncio.sleep(120)
                raise OverdueError("no answer in 120 s")
            if is_struck and asyncio.get_running_loop().time() < 10:
                await asyncio.sleep(10)
            return await super().complete(prompt, role=role, on_text=on_text)

    model = Hanging(None, probed="ok")

    async def live():
        world = VirtualWorld(model=model, pace=Pace(concurrency=1))
        ended = await world.run()
        return ended, await world.store.events(ended.id, limit=10_000)

    ended, rows = run_virtually(live())

    assert ended.stop_reason is StopReason.FINISHED
    cut_off = [event.data for event in rows if event.kind == events.STEP_ABANDONED]
    charged = [
        data["prompt_tokens"] + data["completion_tokens"]
        for data in cut_off
        if data["key"].startswith("probe/")
    ]
    assert 8 <= len(charged) <= 20 and max(charged) <= 100
    assert len(cut_off) - len(charged) <= 1  # the call that was in flight
    said = [event.at for event in rows if event.kind == events.MODEL_AVAILABLE]
    assert len(said) == 1 and 310 <= (said[0] - rows[0].at).total_seconds() <= 330


def test_the_model_answers_again_is_not_said_by_work_that_asked_another_one():
    script = Script({"Begin": propose(*REFUSED)})

    def limited(prompt, role):
        is_free = task_of(prompt).endswith(": Begin") or asyncio.get_running_loop().time() > 500
        return (
            script(prompt, role)
            if is_free
            else ModelUnavailableError("limited", is_limit=True, retry_after_s=1e8)
        )

    async def live():
        other = ScriptedModel(script, name="other")
        models = dict.fromkeys((Role.CREATION, Role.PRIORITIZATION, Role.REPORT), other) | {
            Role.EXECUTION: ScriptedModel(limited)
        }
        world = VirtualWorld(models=models, pace=Pace(concurrency=2))
        ended = await world.run()
        return ended, await world.store.events(ended.id, limit=10_000)

    ended, rows = run_virtually(live())

    assert ended.stop_reason is StopReason.FINISHED
    began = next(event.at for event in rows if event.kind == events.MODEL_UNAVAILABLE)
    said = [event.at for event in rows if event.kind == events.MODEL_AVAILABLE]
    # a held endpoint is asked once a minute
    assert len(said) == 1 and 450 <= (said[0] - began).total_seconds() <= 500 + 60


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_limit_of_time_ends_an_objective_whose_calls_all_hang(concurrency):
    class Stuck(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            if (
                role is Role.EXECUTION
                and not is_probe(prompt)
                and not task_of(prompt).endswith(": Begin")
            ):
                await asyncio.sleep(3000)
            return await super().complete(prompt, role=role, on_text=on_text)

    async def live():
        world = VirtualWorld(
            model=Stuck(Script({"Begin": propose(*REFUSED)})), pace=Pace(concurrency=concurrency)
        )
        objective = await world.start(limits=Limits(max_time_s=25))
        working = asyncio.ensure_future(world.open_worker(objective).run(objective.id))
        await asyncio.sleep(25 + 12)
        soon = await world.store.objective(objective.id)
        markdown = await load_report(world.store, soon)
        ended, _ = await working
        return (
            soon,
            markdown,
            ended,
            await world.store.report(objective.id),
            await world.store.tasks(objective.id),
        )

    soon, markdown, ended, report, tasks = run_virtually(live())

    assert soon.stop_reason is ended.stop_reason is StopReason.LIMIT_TIME
    assert (
        "No summary was written (the model is asked for it now" in markdown
        and "a result" in markdown
    )
    # a call in flight is awaited
    assert [task.status for task in tasks[1 : 1 + concurrency]] == [
        TaskStatus.RECORDED
    ] * concurrency
    assert "No summary" not in report


def test_an_objective_of_which_no_task_was_answered_names_the_most_frequent_reason():
    refusal = RequestRefusedError("refused (400)")
    model = ScriptedModel(lambda prompt, role: refusal, answers_probes=True)

    ended, tasks, _ = run_faulty(model)

    assert (ended.stop_reason, [task.status for task in tasks]) == (
        StopReason.FAILED,
        [TaskStatus.DEAD],
    )
    assert ended.stop_detail == "no task was answered, 1 was given up: refused (400)"


async def park(world, objective):
    """The first task asks a person, under a worker that is gone since."""
    await join(world.store, make_worker("gone"), objective.id)
    claim = await world.store.claim_task(objective.id, "gone")
    request = write_request("ask_user", {"question": "Which one?"})
    step = await world.store.park_task(claim.fence, key="1/q", kind=QUESTION, request=request)
    await world.store.remove_worker("gone")
    return step


def test_a_run_waits_for_the_answer_of_the_person_who_is_there_and_ends_without_one():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        objective = await world.start()
        step = await park(world, objective)
        is_there = [True]
        running = asyncio.ensure_future(
            world.open_crew().run(
                objective.id, patience=Patience(is_person_there=lambda: is_there[0])
            )
        )
        await asyncio.sleep(600)
        assert (await world.store.objective(objective.id)).status is ObjectiveStatus.ACTIVE
        said = decide(step, Decision.ANSWER, "the second")
        await world.store.answer_step(step.id, output=said.to_json())
        ended, _ = await running
        assert ended.stop_reason is StopReason.FINISHED

        other = await world.start()
        await park(world, other)
        is_there[0] = False
        left, _ = await world.open_crew().run(
            other.id, patience=Patience(is_person_there=lambda: is_there[0])
        )
        assert left.stop_reason is StopReason.WAITING

    run_virtually(live())


def test_an_end_as_waiting_by_another_worker_is_outlived_by_the_one_that_has_a_person():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        objective = await world.start()
        step = await park(world, objective)
        running = asyncio.ensure_future(
            world.open_crew().run(objective.id, patience=Patience(is_person_there=lambda: True))
        )
        await asyncio.sleep(10)
        await world.store.end_objective(objective.id)
        await asyncio.sleep(10)
        assert (await world.store.objective(objective.id)).has_report and not running.done()
        said = decide(step, Decision.ANSWER, "the second")
        await world.store.answer_step(step.id, output=said.to_json())
        ended, _ = await running
        assert ended.stop_reason is StopReason.FINISHED

    run_virtually(live())


def test_the_silence_of_a_person_who_is_there_is_no_time_of_the_work():
    async def live():
        world = Crew(model=ScriptedModel(Script()))
        objective = await world.start(limits=Limits(max_time_s=60.0))
        step = await park(world, objective)
        running = asyncio.ensure_future(
            world.open_crew().run(objective.id, patience=Patience(is_person_there=lambda: True))
        )
        await asyncio.sleep(3600)
        silent = await world.store.objective(objective.id)
        (worker,) = await world.store.workers()
        said = decide(step, Decision.ANSWER, "the second")
        await world.store.answer_step(step.id, output=said.to_json())
        ended, _ = await running

        assert (silent.status, silent.active_s < 10) == (ObjectiveStatus.ACTIVE, True)
        assert serving([worker], objective.id) == [worker]
        assert ended.stop_reason is StopReason.FINISHED and ended.active_s < 60
        kinds = [event.kind for event in await world.store.events(objective.id)]
        assert events.WORKER_BLOCKED not in kinds and kinds.count(events.WORKER_JOINED) == 2

    run_virtually(live())


def test_the_reading_of_a_report_for_a_program_waits_until_a_long_outage_is_over():
    script = Script({"Begin": propose("Look")}, check=quote_two)

    def answer(prompt, role):
        if not prompt.messages[0].text.startswith("Role: output"):
            is_down = is_probe(prompt) and len(asked) > 0 and clock() < 600
            return ModelUnavailableError("away") if is_down else script(prompt, role)
        asked.append(clock())
        return '"5"' if clock() >= 600 else ModelUnavailableError("away")

    asked: list[float] = []
    shown: list[str] = []

    def clock():
        return asyncio.get_running_loop().time()

    async def live():
        model = ScriptedModel(answer, answers_checks=True)
        world = VirtualWorld(model=model, pace=Pace(concurrency=1))
        objective = await world.start(output_schema={"type": "string"})

        async def look():
            await asyncio.sleep(400)
            shown.append(await load_report(world.store, await world.store.objective(1)))

        async with asyncio.TaskGroup() as group:
            group.create_task(look())
            ended = await world.run(objective)
        steps = await world.store.steps(ended.id, owner="report")
        return ended, {step.key: step.output for step in steps}, model, await world.store.report(1)

    ended, outputs, model, report = run_virtually(live())

    assert ended.stop_reason is StopReason.FINISHED and "Without a model" not in (report or "")
    assert "The answer." in shown[0]  # while its reading is waited for
    assert outputs["output/text"] == '"\\"5\\""' and "output/none" not in outputs
    written = [prompt for prompt in model.asked(Role.REPORT) if "Role: report" in str(prompt)]
    assert len(written) == 1 and len(asked) > 1


@pytest.mark.parametrize(
    "refusal",
    [
        CredentialsError("the key is refused"),
        LimitReachedError("no call is left", limit="calls", is_final=True),
        ModelRejectedError("no quota is left"),
        RuntimeError("a bug of ours"),
    ],
    ids=["key", "limit", "quota", "bug"],
)
def test_what_strikes_between_the_report_and_its_reading_takes_nothing_of_the_report(refusal):
    script = Script({"Begin": propose("Look")}, check=quote_two, report="Tea costs 5.")
    asked = []

    def answer(prompt, role):
        is_reading = prompt.messages[0].text.startswith("Role: output")
        asked.append(is_reading)
        if is_reading:
            # the first try meets an outage, so that the next one begins with a probe
            is_first = sum(asked) == 1
            return ModelUnavailableError("away", may_be_billed=True) if is_first else refusal
        return refusal if is_probe(prompt) and any(asked) else script(prompt, role)

    async def live():
        model = ScriptedModel(answer, answers_checks=True, answers_probes=True)
        world = VirtualWorld(model=model, pace=Pace(concurrency=1))
        objective = await world.start(output_schema={"type": "string"})
        ended = await world.run(objective)
        steps = await world.store.steps(ended.id, owner="report")
        return ended, {step.key: step.output for step in steps}, await world.store.report(1)

    ended, outputs, report = run_virtually(live())

    assert ended.has_report and "Tea costs 5." in (report or "")
    assert "No summary was written" not in (report or "")
    assert str(refusal) in (outputs["output/none"] or "") and "output/text" not in outputs


# -- when planning and ordering are due
# --------------------------------------------------------------------------------------------------

THREE = ("glacier", "harbour", "orchard")
GROWING = {"Begin": propose(*THREE), "glacier": propose("lantern"), "lantern": propose("quarry")}
LETTERS = {"execution": "e", "creation": "c", "prioritization": "p"}


def beat_of(model):
    """A letter for each call of the model: to execute, to create or to prioritize. Checks and
    reports are left out."""
    agents = [system_of(prompt).split()[1] for _, prompt in model.calls]
    return "".join(LETTERS.get(agent, "") for agent in agents)


def run_at(pace, script, *, latency_s=0.0):
    """Run an objective to its end, and return the model with what it was asked."""
    model = ScriptedModel(script, latency_s=latency_s)
    ended = run_virtually(VirtualWorld(model=model, pace=pace).run())
    assert ended.stop_reason is StopReason.FINISHED
    return model


def test_each_result_is_planned_from_and_the_list_is_ordered_if_that_leaves_two_or_more():
    model = run_at(Pace(concurrency=1), Script(GROWING))

    # Begin brings three; glacier brings a third to the two that are left; harbour and orchard bring
    # none; lantern brings quarry, which waits alone
    assert beat_of(model) == "ecpecpecececec"


def test_batched_planning_waits_for_three_results_and_ordering_for_five_tasks():
    few = run_at(Pace(concurrency=1, is_batched=True), Script(GROWING))
    many = run_at(Pace(concurrency=1, is_batched=True), Script({"Begin": propose(*NAMES)}))

    assert beat_of(few) == "eceeececec"
    assert beat_of(many) == "ecpeeeceeeceec"


def test_with_one_slot_the_list_is_ordered_before_the_next_task_is_claimed():
    model = run_at(Pace(concurrency=1), Script(GROWING, order='{"order": [4, 3, 2]}'))

    executed = [task_of(prompt) for prompt in model.asked(Role.EXECUTION)]
    assert executed[:2] == ["1: Begin", "4: orchard"]


def test_a_free_slot_waits_for_no_order():
    n_begun = []

    def order(prompt):
        n_begun.append(len(model.asked(Role.EXECUTION)))
        return '{"order": []}'

    model = ScriptedModel(Script({"Begin": propose(*NAMES)}, order=order), latency_s=1.0)
    run_virtually(VirtualWorld(model=model, pace=Pace(concurrency=4)).run())

    assert n_begun == [1 + 3]  # when the order is answered


@pytest.mark.parametrize("n_tasks", [2, 3, 4])
def test_a_few_proposals_are_ordered_although_a_slot_is_free_for_each(n_tasks):
    script = Script({"Begin": propose(*NAMES[:n_tasks])})

    model = run_at(Pace(concurrency=8), script, latency_s=1.0)

    assert len(model.asked(Role.PRIORITIZATION)) == 1


def test_what_arrives_while_a_planning_runs_is_planned_together_in_the_next_one():
    model = SlowPlanner(Script({"Begin": propose(*NAMES)}), latency_s=1.0)
    run_virtually(VirtualWorld(model=model, pace=Pace(concurrency=2)).run())

    n_planned = [
        len(finished_in(prompt))
        for prompt in model.asked(Role.CREATION)
        if system_of(prompt) == "Role: creation agent"
    ]
    assert n_planned == [1, 1, 4, 3]


class SlowPlanner(ScriptedModel):
    """Takes four times as long to plan as to do anything else."""

    async def complete(self, prompt, *, role, on_text=None):
        if system_of(prompt) == "Role: creation agent":
            await asyncio.sleep(3 * self._latency_s)
        return await super().complete(prompt, role=role, on_text=on_text)
