"""The only access to a model or a tool: look up → reserve → record as intended → call → record the
outcome and release the reservation.

A step is identified by its owner and its key. A call whose outcome is recorded is read from the
journal from then on, and is never paid for again. A recorded step is used even if its request has
changed since; an event says so.

Does not cover: retrying within one call (the model's adapter), and waiting for the end of an outage
(`worker/serving.py`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

from babyagi import events, inbox, policy
from babyagi.errors import (
    FAULTS_OF_THE_TASK,
    BabyagiError,
    LimitReachedError,
    ModelUnavailableError,
    ObjectiveStoppedError,
    OverdueError,
    ParkedError,
    SettingsError,
    StoreUnavailableError,
    ToolError,
    find_shortage,
)
from babyagi.llm.kept import write_prompt
from babyagi.llm.learning import LearningModel
from babyagi.llm.port import Abilities, ChatModel, Completion, Embedder, OnText
from babyagi.llm.prompt import Message, Prompt, mark_of, seal, unmark
from babyagi.llm.retry import Deadline
from babyagi.redaction import redact
from babyagi.runtime.offload import now_s
from babyagi.runtime.tracing import NO_TRACER, Tracer, answered
from babyagi.tasks import (
    MAX_ARTIFACTS,
    MAX_SOURCES,
    Approval,
    Effect,
    Fence,
    Objective,
    Passage,
    Reservation,
    Role,
    Step,
    StepState,
    Usage,
    digest,
    find_sources,
    write_form,
)
from babyagi.taskstore.lifecycle import INPUTS
from babyagi.taskstore.limits import charge_of
from babyagi.taskstore.nouns import Intention, Kept, Outcome
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import clean, one_line, shorten
from babyagi.tools.base import (
    Compose,
    Observation,
    OutOfTimeError,
    Tool,
    parse_arguments,
    run_in_time,
)
from babyagi.tools.declare import FunctionTool

logger = logging.getLogger(__name__)

T = TypeVar("T")

RECORD_PAUSE_S = 1.0
MAX_FAULT_CHARS = 300  # of an exception's text
MAX_REDACTED_CHARS = 4000
_FOLDERS = re.compile(
    r"""(?<![\w.:/])/(?:[^\s'"/:;,]+/)+"""
)  # paths of this machine, which no model needs
ANY_AUTHORITY = inbox.Authority()
MAX_ASKED_AGAIN = 20  # answers from elsewhere to one request, after which the call is refused
LATE = "late"  # part of the key under which it is noted that a call was cut off at its deadline
MIN_OUTPUT_TOKENS = 64  # an answer may always be this long, however often it was late


class Gate:
    """State shared by the journals of a worker: whether further calls are refused, because the
    worker is about to stop; which models do not answer; and how much time the objective has left.

    `silent` maps each model whose last call got no answer to a role that uses it.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.silent: dict[str, Role] = {}
        self.left_s = math.inf
        self._silent_since_s: dict[str, float] = {}

    def close(self, reason: str) -> None:
        self.reason = reason

    def check(self) -> None:
        if self.reason:
            raise ObjectiveStoppedError(self.reason)

    @contextmanager
    def listening(self, model: str, role: Role) -> Iterator[None]:
        """Note in `silent` whether the model answers the call that is made in this context; a
        refusal is an answer. If another call found the model silent after this one was sent, an
        answer to this one does not end the silence."""
        sent_s = now_s()
        try:
            yield
        except ModelUnavailableError:
            self.silent[model], self._silent_since_s[model] = role, now_s()
            raise
        except FAULTS_OF_THE_TASK:
            self._note_answer(model, sent_s)
            raise
        self._note_answer(model, sent_s)

    def note_time(self, objective: Objective) -> None:
        """Note how much time the objective has left."""
        max_time_s = objective.spec.limits.max_time_s
        self.left_s = max_time_s - objective.active_s if max_time_s else math.inf

    def _note_answer(self, model: str, sent_s: float) -> None:
        if sent_s >= self._silent_since_s.get(model, sent_s):
            self.silent.pop(model, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A piece of the answer that a model is writing now, to be shown and stored nowhere.

    `owner` and `key` identify the call in the journal; all pieces of one call have the same.
    """

    objective_id: int
    owner: str
    key: str
    role: Role
    text: str


OnPiece = Callable[[TextPiece], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """What all journals of a worker use: the store that they record in, and the models and the
    embedder that they call.

    Attributes:
        sleep: waits the given seconds; it is the worker's clock.
        new_secret: makes the secret of a store that has none yet. From it come the
            delimiters around passages in a prompt, which the author of a passage cannot guess.
        authority: which calls this machine asks about, and whose answers count.
        on_piece: called with the text of answers as it arrives, if a person watches.
        max_output_tokens: bounds every answer; 0: as many as each call asks for.
    """

    store: TaskStore
    models: Mapping[Role, ChatModel]
    embedder: Embedder
    gate: Gate
    sleep: Callable[[float], Awaitable[None]]
    new_secret: Callable[[], str] = secrets.token_hex
    authority: inbox.Authority = ANY_AUTHORITY
    on_piece: OnPiece | None = None
    max_output_tokens: int = 0
    tracer: Tracer = NO_TRACER


class _Recorded:
    """The recorded steps of a task or duty (work for the whole objective, such as planning), read
    from the store once: while its claim lives, only this process records steps for it.

    `held` is an outcome that waits in memory to be recorded with the next change under the claim.
    `n_calls` counts the calls in flight. `asked` is the key of the last step whose prompt was
    answered, and that prompt.
    """

    def __init__(self, store: TaskStore, fence: Fence, *, is_empty: bool) -> None:
        self.held: Outcome | Kept | None = None
        self.n_calls = 0
        self.asked: tuple[str, Sequence[Message]] = ("", ())
        self._store = store
        self._fence = fence
        self._step_by_key: dict[str, Step] | None = {} if is_empty else None

    async def find(self, key: str) -> Step | None:
        """Return the step with this key if its outcome is recorded, else None."""
        if self._step_by_key is None:
            steps = await self._store.steps(self._fence.objective_id, owner=self._fence.owner)
            # a call at the same time may have read it meanwhile, and added to it
            if self._step_by_key is None:
                self._step_by_key = {}
                for step in steps:
                    self.add(step)
        return self._step_by_key.get(key)

    async def all(self) -> list[Step]:
        await self.find("")
        return list((self._step_by_key or {}).values())

    @contextmanager
    def calling(self) -> Iterator[None]:
        self.n_calls += 1
        try:
            yield
        finally:
            self.n_calls -= 1

    def add(self, step: Step) -> Step:
        if self._step_by_key is not None and step.output is not None:
            self._step_by_key[step.key] = step
        return step


class Journal:
    """Makes and records the calls of one owner, a task or a duty (work for the whole objective,
    such as planning), under one claim.

    Entered as a context, it commits an outcome in one transaction with what comes next: the outcome
    waits in memory for the next intended call, or for the change that `commit` makes, and for
    nothing else. The outcome is recorded in a transaction of its own before a tool is called, when
    another call is in flight, and when the context is left, whatever the reason. So nothing that
    was made from an outcome leaves the process before the outcome is durable. Call `flush` before
    the owner's steps are read from the store.

    Args:
        fence: the claim that the steps are recorded under.
        prefix: the start of every key: `<try>/` for a task, nothing for a duty.
        approval: which tool calls ask a person first.
        has_person: for an agent outside of an objective, whether somebody can be asked what may
            leave this machine. There a program's function that is declared to need approval asks
            whatever `approval` says. None: `approval` decides both.
        is_new: nothing is recorded for the owner yet.
    """

    def __init__(
        self,
        backends: Backends,
        *,
        fence: Fence,
        prefix: str = "",
        approval: Approval = Approval.ONCE,
        has_person: bool | None = None,
        is_new: bool = False,
    ) -> None:
        self._backends = backends
        self._store = backends.store
        self._fence = fence
        self._prefix = self._try_prefix = prefix
        # the keys of calls that a composed tool makes itself; none at first
        self._inner_prefix = "\0"
        self._authority = backends.authority
        self._approval = policy.restrict(backends.authority.approval, approval)
        self._has_person = has_person
        self._recorded = _Recorded(self._store, fence, is_empty=is_new)
        self._may_hold = False

    async def __aenter__(self) -> Self:
        self._may_hold = True
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._may_hold = False
        held = self._recorded.held
        if isinstance(held, Outcome) and not isinstance(error, asyncio.CancelledError):
            await self.flush()
        elif held is not None:
            # a `Kept` cost nothing and may be lost; a cancellation must not wait for the store
            with suppress(BabyagiError):
                await self._record_once(held)
            self._let_go(held)

    def below(self, path: str) -> Journal:
        """Return a journal for the same claim whose keys begin with this path, for a tool that
        makes calls itself."""
        inner = Journal(
            self._backends,
            fence=self._fence,
            prefix=f"{self._prefix}{path}/",
            approval=self._approval,
            has_person=self._has_person,
        )
        inner._try_prefix, inner._recorded = self._try_prefix, self._recorded
        inner._inner_prefix = inner._prefix
        return inner

    async def flush(self) -> None:
        """If the outcome of a call still waits in memory to be recorded, record it now, in a
        transaction of its own."""
        held = self._recorded.held
        match held:
            case Outcome():
                await self._record(held)
            case Kept():
                await self._record_once(held)
        self._let_go(held)

    async def commit(self, change: Callable[[Outcome | Kept | None], Awaitable[T]]) -> T:
        """Change the store under the claim. If the outcome of a call waits in memory to be
        recorded, it is recorded in the same transaction (the store's argument `first`)."""
        held = self._recorded.held
        done = await change(held)
        self._let_go(held)
        return done

    def _let_go(self, held: Outcome | Kept | None) -> None:
        if self._recorded.held is held:
            self._recorded.held = None

    def _holds(self, outcome: Outcome | Kept) -> bool:
        """Keep the outcome of a call in this process, to be recorded together with the next change
        of the store, and return True. Return False if it cannot wait, because another call is in
        flight or the journal is not used in a `with` block. The caller must then record the outcome
        in a transaction of its own."""
        if not self._may_hold or self._recorded.n_calls > 1:
            return False
        self._recorded.held = outcome
        return True

    async def kept(self, path: str) -> str | None:
        """Return the text that `keep` stored in the journal at this path (a key); None if it stored
        none."""
        step = await self._recorded.find(self._prefix + path)
        return None if step is None else str(json.loads(step.output or ""))

    async def keep(self, path: str, word: str) -> str:
        """Store a text in the journal at this path (a key), unless one is stored there; return the
        stored text."""
        output = json.dumps(word)
        kept = self._keep(path, kind=INPUTS, request=output, output=output)
        await self.flush()
        return str(json.loads((await self._record_once(kept)).output or ""))

    async def bound_output(self, path: str, wanted: int) -> int:
        """Return how many tokens the answer to the call at this path (its key in the journal) may
        have, at most `wanted`. The number is halved for each time that this call, or any call of an
        earlier try, was late although no longer deadline was possible."""
        most = self._backends.max_output_tokens or wanted
        n_late = len(await self._late_keys(path))
        return max(min(wanted, most) >> n_late, min(wanted, most, MIN_OUTPUT_TOKENS))

    def abilities(self, role: Role) -> Abilities | None:
        """Return what is known about the abilities of the role's model; None if they need not be
        found out by test calls."""
        known: Abilities | None = getattr(self._backends.models[role], "abilities", None)
        return known

    def learning_model(self, role: Role) -> LearningModel | None:
        """Return the role's model if test calls find out its abilities; None otherwise."""
        model = self._backends.models[role]
        return model if isinstance(model, LearningModel) else None

    async def _late_keys(self, path: str) -> list[str]:
        """Return a key for each time that `_note_late` noted for the call at this path, or for any
        call of an earlier try."""
        begins = f"{self._prefix}{LATE}/{path}/"
        keys = [step.key for step in await self._recorded.all() if LATE in step.key.split("/")]
        return [
            key for key in keys if key.startswith(begins) or not key.startswith(self._try_prefix)
        ]

    async def _note_late(self, path: str, deadline: Deadline | None) -> None:
        """Note that the call at this path was late, unless the next one has a longer deadline, or
        no time for a next one is left."""
        left_s = self._backends.gate.left_s
        if deadline is not None and (deadline.next_s <= left_s or left_s <= 0):
            return
        begins = f"{self._prefix}{LATE}/{path}/"
        n = sum(key.startswith(begins) for key in await self._late_keys(path))
        await self.keep(f"{LATE}/{path}/{n + 1}", LATE)

    async def inputs(self, build: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Any]:
        """Return the inputs of this try (the context that was chosen for it). Call this once per
        journal.

        Returns:
            The JSON object that `build` returned the first time. `build` is not called if an
            earlier claim of this try has recorded the inputs.
        """
        step = await self._recorded.find(f"{self._prefix}inputs")
        if step is None:
            output = json.dumps(await build(), ensure_ascii=False)
            kept = self._keep("inputs", kind=INPUTS, request=output, output=output)
            output = await self._hold_or_put(kept)
        else:
            output = step.output or "{}"
        found: Mapping[str, Any] = json.loads(output)
        return found

    async def complete(
        self, path: str, prompt: Prompt, *, role: Role, timeout_s: float | None = None
    ) -> Completion:
        """Return the model's completion: the one recorded at this path, or a new one.

        Args:
            timeout_s: after this time the call is cut off; None leaves that to the model.

        Raises:
            LimitReachedError, ObjectiveStoppedError, LeaseLostError: no call was made.
            Whatever `ChatModel.complete` raises; the reservation is then released, or charged if
                the call may be billed.
        """
        model = self._backends.models[role]
        with self._recorded.calling():
            step, sealed = await self._intend_question(path, prompt, model)
            if step.output is not None:
                return Completion.from_json(step.output)
            try:
                completion = await self._ask_model(model, sealed, role, timeout_s, step.key)
            except BabyagiError as error:
                await self._abandon(step, error)
                if isinstance(error, OverdueError):
                    await self._note_late(path, _deadline_of(model))
                raise
            self._recorded.asked = (step.key, prompt.messages)
            outcome = Outcome(
                key=step.key,
                output=completion.to_json(),
                usage=completion.usage,
                model=completion.model,
                origins=(*sealed.origins, f"model:{completion.model}"),
            )
            if self._holds(outcome):
                return completion
            return Completion.from_json((await self._record(outcome)).output or "")

    async def _abandon(self, step: Step, error: BabyagiError) -> None:
        lost = Outcome(key=step.key, output=None, usage=_billed(error, step.reservation))
        await self._store.record_step(self._fence, lost)

    async def _intend_question(
        self, path: str, prompt: Prompt, model: ChatModel
    ) -> tuple[Step, Prompt]:
        """Record that the prompt is about to be sent. Return the step recorded for it, and the
        prompt as it will be sent."""
        before_key, before = self._recorded.asked
        kept = write_prompt(prompt, before=before, before_key=before_key)
        prompt = seal(prompt, await self._mark())
        intention = Intention(
            key=self._prefix + path,
            kind="model",
            request_hash=digest(repr(prompt)),
            reservation=model.reserve(prompt),
            model=model.name,
            request=kept,
        )
        return await self._intend(intention), prompt

    async def _ask_model(
        self, model: ChatModel, prompt: Prompt, role: Role, timeout_s: float | None, key: str
    ) -> Completion:
        """Call the model, and pass on each piece of its answer if there is a listener."""
        tracer, gate, on_piece = (
            self._backends.tracer,
            self._backends.gate,
            self._backends.on_piece,
        )
        listeners: dict[str, OnText] = {}
        if on_piece is not None:
            fence = self._fence
            piece = partial(
                TextPiece, objective_id=fence.objective_id, owner=fence.owner, key=key, role=role
            )
            listeners["on_text"] = lambda text: on_piece(piece(text=text))
        with (
            tracer.model_call(model.name, max_tokens=prompt.max_output_tokens) as span,
            gate.listening(model.name, role),
        ):
            deadline, sent_s = _deadline_of(model), now_s()
            # no longer than its first deadline once the time of the objective is over
            patience_s = max(deadline.first_s, gate.left_s) if deadline is not None else math.inf
            limit_s = min(patience_s, math.inf if timeout_s is None else timeout_s)
            try:
                async with asyncio.timeout(limit_s if limit_s < math.inf else None):
                    completion = await model.complete(prompt, role=role, **listeners)
            except TimeoutError as error:
                what = f"{model.name} gave no answer within {now_s() - sent_s:.3g} s"
                raise OverdueError(what) from error
            usage = completion.usage
            span.set_attributes(
                answered(
                    completion.model,
                    prompt_tokens=usage.prompt_tokens,
                    completion_tokens=usage.completion_tokens,
                    cost_usd=usage.cost_usd,
                )
            )
        return completion

    async def _mark(self) -> str:
        """Return the mark of the fences in the objective's prompts, the lines around each passage.
        It is secret, and the same in every call of the objective."""
        secret = await self._store.secret(self._backends.new_secret())
        return mark_of(secret, str(self._fence.objective_id))

    async def earlier_sources(self) -> tuple[str, ...]:
        """Return the origins from outside (tools, files, pages) of the texts that earlier tries of
        this task read."""
        return find_sources(
            origin
            for step in await self._recorded.all()
            if not step.key.startswith(self._try_prefix)
            for origin in step.origins
        )

    async def call_tool(self, path: str, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
        """Return the outcome of the tool call: the recorded one, or that of a new call. Nothing
        that a tool does ends a run: an exception or a time-out becomes an error observation.

        Raises:
            ParkedError: a person must answer, approve, or say whether the call was made; the task
                waits, and the claim is released.
        """
        self._backends.gate.check()
        await self.flush()
        arguments = unmark(arguments, await self._mark())
        with self._recorded.calling(), self._backends.tracer.tool_call(tool.name):
            return await self._call_tool(path, tool, arguments)

    async def _call_tool(self, path: str, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
        step = await self._recorded.find(self._prefix + path)
        if step is not None:
            observation = Observation.from_json(step.output or "")
            if step.kind == inbox.ONCE and observation.passage.origin == "person":
                return await self._ask(path, inbox.ONCE, step.request)
            return observation
        request = inbox.write_request(tool.name, arguments)
        if tool.offered is not None and not await self._is_begun(path, tool, request):
            try:
                now = await self._as_allowed(path, tool, await tool.offered())
                if now.form != tool.form:
                    arguments = parse_arguments(now, json.dumps(dict(arguments)))
            except ToolError as error:
                return await self._put_observation(path, _refused(tool, error), request)
            tool, request = now, inbox.write_request(now.name, arguments)
        if tool.for_call is not None:
            tool = tool.for_call(self._fence.owner, self._prefix + path)
        return await self._make_call(path, tool, arguments, request)

    async def _make_call(
        self, path: str, tool: Tool, arguments: Mapping[str, Any], request: str
    ) -> Observation:
        if tool.compose is not None:
            return await self._put_observation(
                path, await self._compose(path, tool, tool.compose, arguments), request
            )
        if tool.asks_person or tool.effect is Effect.ONCE:
            kind = inbox.QUESTION if tool.asks_person else inbox.ONCE
            known = await self._found_in_an_earlier_try(request, kind)
            if known is not None:
                return await self._put_observation(path, known, request)
        if tool.asks_person:
            return await self._ask(path, inbox.QUESTION, request)
        allowed = await self._find_leave(path, tool, arguments, request)
        if isinstance(allowed, Observation):
            return allowed
        refused = await _refuse_unseen(tool, allowed, arguments)
        if tool.effect is Effect.ONCE:
            return await self._call_once(path, tool, arguments, request, refused)
        return await self._put_observation(
            path, refused or await run_tool(tool, arguments), request
        )

    async def _find_leave(
        self, path: str, tool: Tool, arguments: Mapping[str, Any], request: str
    ) -> Step | Observation | None:
        """Return the step with the person's yes, or None if the call needs none. If it must not be
        made, return why, for the model."""
        match policy.decide(tool, arguments, await self._see(tool)):
            case policy.No(reason=reason):
                told = Passage(text=reason, origin="program")
                observation = Observation(passage=told, is_error=True)
                return await self._put_observation(path, observation, request)
            case policy.Ask(to=to):
                asked = inbox.write_request(tool.name, arguments, to=to)
                step = await self._settle(f"{path}/approval", inbox.APPROVAL, asked)
                approval = Observation.from_json(step.output or "")
                return approval if approval.is_error else step
        return None

    async def _see(self, tool: Tool) -> policy.Situation:
        """Return what the decision about a call of the tool depends on. Everything in the prompts
        of all tries counts, which programs may have written to files, and what was read by the tool
        that makes the call. The store is read only if private texts could leave."""
        origins = {
            origin
            for step in await self._recorded.all()
            if step.kind == "model" or step.key.startswith(self._inner_prefix)
            for origin in step.origins
        }
        now = policy.Situation(
            origins=origins,
            approval=self._approval,
            is_heeded=self._has_person is not None and isinstance(tool, FunctionTool),
            has_person=self._approval is Approval.ONCE or bool(self._has_person),
        )
        if not policy.may_leak(tool, origins):
            return now
        objective = await self._store.objective(self._fence.objective_id)
        answered = await self._store.steps(objective.id, are_answered=True)
        said = [objective.spec.asked] * (objective.spec.text_origin == "person")
        said += [objective.spec.initial_task] * (objective.spec.task_origin == "person")
        said += [inbox.words_of(step) for step in answered if step.kind == inbox.QUESTION]
        counted = [step for step in answered if self._authority.has_settled(step, step.kind)]
        return replace(now, said=said, may_send=inbox.find_lasting(counted))

    async def _is_begun(self, path: str, tool: Tool, request: str) -> bool:
        """Return whether this call must not be repeated, and may already have been made in this or
        an earlier try."""
        if tool.effect is not Effect.ONCE:
            return False
        named = [(self._fence.owner, self._prefix + path)]
        return bool(
            await self._found_in_an_earlier_try(request, inbox.ONCE)
            or await self._store.steps(self._fence.objective_id, named=named)
        )

    async def _as_allowed(self, path: str, tool: Tool, now: Tool) -> Tool:
        """Return `now`, the tool in its present form, if the objective was granted the tool in this
        form or a person has allowed it. What the task store says of that counts only where no other
        process can write to it.

        Raises:
            ToolError: a person refused the present form.
            ParkedError: no person has decided yet.
        """
        allowed = self._authority.find_form(tool.name) or tool.form
        if now.form == allowed:
            return now
        objective = await self._store.objective(self._fence.objective_id)
        grant = next((one for one in objective.spec.tools if one.name == tool.name), None)
        granted = write_form(grant.description, grant.parameters) if grant is not None else ""
        if granted == now.form and not self._authority.key:
            return now
        if grant is not None and grant.refused == digest(now.form):
            raise ToolError(f"{tool.name} has changed, and a person did not allow it as it is now")
        request = inbox.write_change(tool.name, before=allowed, now=now.form)
        said = await self._ask(f"{path}/changed", inbox.CHANGED, request)
        if said.is_error:
            raise ToolError(said.passage.text)
        return now

    async def _compose(
        self, path: str, tool: Tool, compose: Compose, arguments: Mapping[str, Any]
    ) -> Observation:
        """Return the output of a tool that makes calls itself; it was made from all that these
        calls read. Each of them is a step of its own, so a restart repeats none."""
        inner = self.below(path)
        try:
            observation = Observation(passage=_bound(await compose(arguments, inner), tool))
        except (ToolError, *FAULTS_OF_THE_TASK) as error:
            observation = _refused(tool, error)
        except BabyagiError:
            raise
        except Exception as error:  # a tool is code from anywhere; an exception is its answer
            observation = _failed(tool, error)
        given = observation.passage
        steps = [one for one in await self._recorded.all() if one.key.startswith(inner._prefix)]
        sources = find_sources(
            (*given.sources, *(origin for one in steps for origin in one.origins))
        )
        return replace(observation, passage=replace(given, sources=sources))

    async def _call_once(
        self,
        path: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        request: str,
        refused: Observation | None,
    ) -> Observation:
        """Make a call that must not be repeated: record that it is intended, make it unless it is
        `refused`, and record its outcome. If it is unclear whether the call was made, a person is
        asked."""
        intention = Intention(key=self._prefix + path, kind=inbox.ONCE, request=request)
        step = await self._store.intend_step(self._fence, intention=intention)
        if step.state is StepState.UNKNOWN:
            return await self._ask(path, inbox.ONCE, request)
        try:
            observation = refused or await _try_tool(tool, arguments)
        except Exception as error:  # the call may have been made all the same
            logger.warning(
                "it is unknown whether a call of %s was carried out: %s",
                tool.name,
                type(error).__name__,
            )
            if tool.asks_approval:
                return await self._ask(path, inbox.ONCE, request)
            observation = _failed(tool, error)
        outcome = Outcome(
            key=step.key,
            output=observation.to_json(),
            usage=Usage(),
            origins=observation.passage.origins,
        )
        return Observation.from_json((await self._record(outcome)).output or "")

    async def _found_in_an_earlier_try(self, request: str, kind: str) -> Observation | None:
        """Return the outcome of the same call or question in an earlier try of this task. The n-th
        such call of this try gets the n-th outcome; None if there are fewer."""
        same = [step for step in await self._recorded.all() if step.request_hash == digest(request)]
        n_mine = sum(
            step.key.startswith(self._try_prefix) and step.kind != inbox.APPROVAL for step in same
        )
        earlier = [
            Observation.from_json(step.output or "")
            for step in same
            if step.kind == kind and not step.key.startswith(self._try_prefix)
        ]
        made = [observation for observation in earlier if not observation.is_error]
        return made[n_mine] if n_mine < len(made) else None

    async def _ask(self, path: str, kind: str, request: str) -> Observation:
        """Return the person's answer to the request, as `_settle` does."""
        return Observation.from_json((await self._settle(path, kind, request)).output or "")

    async def _settle(self, path: str, kind: str, request: str) -> Step:
        """Return the step with the person's answer. If there is none yet, release the claim, let
        the task wait for the answer, and raise `ParkedError`. An answer that does not count on this
        machine stays in the journal, and the person is asked again."""
        for n in range(1, MAX_ASKED_AGAIN + 1):
            key = self._prefix + (path if n == 1 else f"{path}/{inbox.ASKED_AGAIN}/{n}")
            step = await self._store.park_task(self._fence, key=key, kind=kind, request=request)
            if step.output is None:
                shown = f"request number {step.id}" if step.id else "the questions to answer first"
                raise ParkedError(
                    f"{self._fence.owner} waits for a person",
                    fix=f"babyagi inbox shows {shown}",
                    guide="inbox",
                )
            if self._authority.has_settled(step, kind):
                return step
        refusal = Passage(text="Not done: no person of this machine allowed it.", origin="person")
        return replace(step, output=Observation(passage=refusal, is_error=True).to_json())

    async def _put_observation(
        self, path: str, observation: Observation, request: str
    ) -> Observation:
        kept = replace(
            self._keep(path, kind="tool", request=request, output=observation.to_json()),
            origins=observation.passage.origins,
            request=request,
        )
        return Observation.from_json(await self._hold_or_put(kept))

    def _keep(self, path: str, *, kind: str, request: str, output: str) -> Kept:
        return Kept(key=self._prefix + path, kind=kind, request_hash=digest(request), output=output)

    async def _hold_or_put(self, kept: Kept) -> str:
        """Record the outcome with the next change of the store, or now if it cannot wait. Return
        the output of the step; if one was recorded earlier, that one stays."""
        if self._holds(kept):
            return kept.output
        return (await self._record_once(kept)).output or kept.output

    async def embed(self, path: str, texts: Sequence[str]) -> list[bytes]:
        """Return one unit vector per text (little-endian float32). A local embedder costs nothing
        and is not journaled."""
        embedder = self._backends.embedder
        if embedder.is_local:
            return (await embedder.embed(texts))[0]
        intention = Intention(
            key=self._prefix + path,
            kind="embedding",
            request_hash=digest("\0".join(texts)),
            reservation=embedder.reserve(texts),
            model=embedder.space,
        )
        step = await self._intend(intention)
        if step.output is None:
            try:
                vectors, usage = await embedder.embed(texts)
            except BabyagiError as error:
                await self._abandon(step, error)
                raise
            output = json.dumps([base64.b64encode(vector).decode() for vector in vectors])
            step = await self._record(
                Outcome(key=step.key, output=output, usage=usage, model=embedder.space)
            )
        return [base64.b64decode(vector) for vector in json.loads(step.output or "[]")]

    async def _intend(self, intention: Intention) -> Step:
        """Record that a call is about to be made, and return its step. If the call exceeds a limit
        only because calls in flight hold reservations, wait for those calls."""
        self._backends.gate.check()
        while True:
            try:
                step = await self.commit(
                    lambda first: self._store.intend_step(
                        self._fence, intention=intention, first=first
                    )
                )
                break
            except LimitReachedError as error:
                if error.is_final:
                    raise
                # the next call cannot take the outcome along yet, so it is recorded by itself
                await self.flush()
                await self._backends.sleep(0.1)
                self._backends.gate.check()
        if step.state is StepState.DONE and step.request_hash != intention.request_hash:
            await self._store.append_event(
                self._fence.objective_id,
                kind=events.STEP_REQUEST_CHANGED,
                data={"owner": self._fence.owner, "key": step.key},
            )
        return step

    async def _record(self, outcome: Outcome) -> Step:
        """Record the outcome of a call that was paid for. While the store is unavailable, try again
        every `RECORD_PAUSE_S`, unless the worker is about to stop."""
        while True:
            try:
                return await self._record_once(outcome)
            except StoreUnavailableError:
                if self._backends.gate.reason:
                    raise
                await self._backends.sleep(RECORD_PAUSE_S)

    async def _record_once(self, made: Outcome | Kept) -> Step:
        """Record the outcome of a call, without trying again if the store is unavailable, and
        return the stored step. An outcome that was recorded earlier stays."""
        return self._recorded.add(await self._store.record_step(self._fence, made))


async def run_tool(tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """Run a tool without a journal and return the outcome; an exception or a time-out becomes an
    error observation.

    Raises:
        SettingsError: no call of the tool can work until a person has changed something.
        MachineShortError: the call may work later.
    """
    try:
        return await _try_tool(tool, arguments)
    except SettingsError:
        raise
    except Exception as error:  # a tool is code from anywhere; an exception is its answer
        if shortage := find_shortage(error):
            raise shortage from error
        return _failed(tool, error)


def _failed(tool: Tool, error: Exception) -> Observation:
    """Describe an exception to the model: its type and its first words. For a call that must not be
    repeated, add that it may have been made."""
    if isinstance(error, OutOfTimeError):
        said = f"{tool.name} took longer than {tool.timeout_s:g} s and was stopped"
    else:
        text = _FOLDERS.sub("…/", redact(str(error)[:MAX_REDACTED_CHARS]))
        why = shorten(one_line(text), MAX_FAULT_CHARS)
        said = f"{tool.name} failed: {type(error).__name__}{f': {why}' if why else ''}"
    if tool.effect is Effect.ONCE:
        said += "; it may have been carried out all the same"
    return Observation(passage=Passage(text=said, origin=tool.origin), is_error=True)


async def _try_tool(tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """Return the output of the tool, or its `ToolError` as an error observation. Any other
    exception is raised, because it is unknown how far the call came."""
    try:
        return Observation(passage=_bound(await run_in_time(tool, arguments), tool))
    except ToolError as error:
        return _refused(tool, error)


async def _refuse_unseen(
    tool: Tool, approved: Step | None, arguments: Mapping[str, Any]
) -> Observation | None:
    """Return the error for the model if the call, or its preview, is not the one that the person
    approved, so that it must not be made; None if it may be made."""
    if approved is None:
        return None
    asked = inbox.write_request(tool.name, arguments, to=inbox.goes_to(approved))
    if approved.request != asked:
        return _refused(
            tool,
            ToolError(
                "Not done: a person approved another call. Make this one again to have it approved."
            ),
        )
    seen = inbox.read_seen(approved)
    if seen and tool.preview is not None:
        try:
            async with asyncio.timeout(tool.timeout_s):
                found = (await tool.preview(arguments)).state
        except Exception as error:
            # a tool is code from anywhere; without a preview, its changes are not known
            found = type(error).__name__
        if found != seen:
            what = (
                "Not done: since a person approved the call, what it would change is no longer the "
                "same. Look again, then make the call anew."
            )
            return _refused(tool, ToolError(what))
    return None


def _refused(tool: Tool, error: BabyagiError) -> Observation:
    return Observation(
        passage=_bound(Passage(text=error.what, origin=tool.origin), tool), is_error=True
    )


def _bound(passage: Passage, tool: Tool) -> Passage:
    """Return the passage cut to the tool's bound. An origin that is not another tool, a file, a
    page or a result is replaced by the tool, so that no tool can speak as a person, and what a
    private one says stays private."""
    text = clean(passage.text)
    if len(text) > tool.max_output_chars:
        text = (
            text[: tool.max_output_chars]
            + f"\n… cut: {len(text) - tool.max_output_chars} more characters"
        )
    others = ("tool:", "private:", "file:", "web:", "result:")
    speaks = passage.origin.startswith(others) and passage.origin != f"tool:{tool.name}"
    own = (tool.origin,) if tool.is_private and speaks else ()
    return Passage(
        text=text,
        origin=passage.origin if speaks else tool.origin,
        sources=find_sources((*passage.sources, *own)),
        pages=passage.pages[:MAX_SOURCES],
        artifacts=passage.artifacts[:MAX_ARTIFACTS],
    )


def _billed(error: BabyagiError, reservation: Reservation) -> Usage:
    """Return the usage to charge for a call that has no outcome: zero if it cannot be billed; what
    the endpoint reported, if that is no fewer tokens than reserved; else the reservation."""
    if not error.may_be_billed:
        return Usage()
    said: Usage | None = error.billed
    return (
        said if said is not None and said.tokens >= reservation.tokens else charge_of(reservation)
    )


def _deadline_of(model: ChatModel) -> Deadline | None:
    deadline: Deadline | None = getattr(model, "deadline", None)
    return deadline
