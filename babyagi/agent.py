"""An agent for programs: it has a model and tools, takes a question and returns a run. It uses the
same executor and journal as the loop, in memory."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from babyagi.app.application import App
from babyagi.app.backends import utc_now
from babyagi.app.model_clients import missing_key
from babyagi.app.options import AgentOptions, Ask, SettingOptions, names_of, require_known
from babyagi.app.toolbox import grant_to_files
from babyagi.components.description import load_description, load_tool
from babyagi.components.kinds import KEY_VARIABLES, Granted
from babyagi.errors import NotFoundError, ParkedError
from babyagi.inbox import describe, take_words
from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal
from babyagi.llm.client import is_client
from babyagi.llm.port import ChatModel, Completion, OnText
from babyagi.llm.prompt import Message, Prompt, ToolCall, fence
from babyagi.memory.kinds import ConversationMemory, ConversationSummaryMemory
from babyagi.memory.log import Known, MemoryLog, join_origins, path_of, require_name
from babyagi.memory.remembering import Remembering
from babyagi.react.asking import Asked
from babyagi.react.executor import (
    Executor,
    OnSignal,
    ask_agent,
    build_agent_tool,
    require_names,
    side_by_side,
    to_step,
)
from babyagi.react.protocols.base import AgentProtocol, fill, instruct
from babyagi.react.steps import (
    Act,
    AgentBounds,
    AgentDecision,
    AgentStep,
    AtLimit,
    Finish,
    Run,
    RunEnded,
    Signal,
    Stopped,
    T,
)
from babyagi.react.values import output_type_of
from babyagi.runtime.offload import Told, call_either, run_blocking
from babyagi.settings.fields import declared_fields, find_longest_output
from babyagi.settings.load import load_here
from babyagi.settings.values import Secret
from babyagi.tasks import (
    Approval,
    Claim,
    Limits,
    Objective,
    ObjectiveSpec,
    Passage,
    Role,
    Usage,
    Worker,
)
from babyagi.taskstore.limits import raise_by_kept_back
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.tools.base import Calls, Observation, PassedOn, Tool
from babyagi.tools.declare import collect_tools, tool

if TYPE_CHECKING:
    from typing import Unpack

    from openai import AsyncOpenAI

_CONTEXT_NAME = re.compile(r"[\w ]{1,40}")
LEASE_S = 365 * 86_400.0  # so long that the lease never ends during a run

History = Run[Any] | Sequence[Message]
ProtocolName = Literal["auto", "native", "json", "text"]
_BOUNDS = frozenset(field.name for field in fields(AgentBounds))
_KEYS = tuple(variable.lower() for variable in KEY_VARIABLES)  # the settings that hold keys
_OF_FILES = ("agent_hosts", *(name for name in _KEYS if name != "openai_api_key"))
_KEYS_AND_HOSTS = ("agent_hosts", *_KEYS)
_PARAMETERS = frozenset(("model", "tools", "output_type", "instruction", "protocol", "ask"))
_LIMITS = ("max_calls", "max_tokens", "max_cost_usd")


class Agent(Generic[T]):
    """A model with tools, asked one question at a time.

        agent = Agent("gpt-6-luna", tools=[price], output_type=int)
        agent.run("What do two teas cost?").output  # an int

    Args:
        model: a name, as in LLM_MODEL, or a `ChatModel`; without one, LLM_MODEL decides. A client
            of the `openai` package (`AsyncOpenAI`, `AsyncAzureOpenAI`) is used with its own
            address, key and HTTP client, and is asked for the model that `llm_model` names; it
            belongs to one event loop, so use `run_async` with it.
        tools: tools, functions with type hints and a docstring, objects with `@tool` methods, or
            what `as_tool` of another agent returns.
        output_type: what an answer must be: a dataclass, a TypedDict, a model of pydantic, an Enum,
            a Literal, int, date, list[…] of these, …. An answer of another type is returned to the
            model with the error. Without it an answer is text.
        instruction: text that the model reads before the question.
        protocol: how the model is asked to call tools: `auto`, `native`, `json`, `text`, or an
            `AgentProtocol`.
        ask: shows a person a question and returns their answer; without it a tool that asks ends
            the run with `ParkedError`.
        memory: what the agent remembers between questions: a `ConversationMemory`, a
            `ConversationSummaryMemory` or an `EntityMemory`; a name means a
            `ConversationSummaryMemory` that is stored in babyagi's home folder under that name. The
            model is shown its content as data, within a bound of tokens.
        options: the fields of `AgentBounds` (`max_steps`, `max_errors`, `max_time_s`, `at_limit`,
            …), the limits of one run (`max_calls`, `max_tokens`, `max_cost_usd`), and, if `model`
            is a name, any setting.

    Raises:
        ValueError: two tools have the same name, a function cannot be a tool, or the output type
            cannot be described to a model.
        TypeError: an option is unknown.
    """

    @overload
    def __init__(
        self,
        model: str | ChatModel | AsyncOpenAI = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        output_type: type[T] | None = None,
        instruction: str = "",
        protocol: AgentProtocol | ProtocolName = "auto",
        ask: Ask | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[Any],
        model: str | ChatModel | AsyncOpenAI = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        output_type: object,
        instruction: str = "",
        protocol: AgentProtocol | ProtocolName = "auto",
        ask: Ask | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...

    def __init__(
        self,
        model: str | ChatModel | AsyncOpenAI = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        output_type: object = None,
        instruction: str = "",
        protocol: AgentProtocol | str = "auto",
        ask: Ask | None = None,
        **options: Any,
    ) -> None:
        _require_options(model, options)
        if "at_limit" in options:
            options["at_limit"] = AtLimit(options["at_limit"])
        self.tools = require_names(collect_tools(tools))
        bounds = {name: options.pop(name) for name in _BOUNDS & options.keys()}
        self.bounds = AgentBounds(**bounds)
        self.output = None if output_type in (None, str) else output_type_of(output_type)
        self.protocol = protocol
        self.instruction = instruction or fill("agent")
        self._context_by_name: dict[str, _Context] = {}
        self.memory = _read_memory(options.pop("memory", None))
        if not (is_client(model) or isinstance(model, str | ChatModel)):
            kinds = "a name, a client or a ChatModel"
            raise TypeError(f"an agent takes {kinds} as its model, not {type(model).__name__}")
        self._client: AsyncOpenAI | None = model if is_client(model) else None
        self._model: str | ChatModel = "" if is_client(model) else model
        self._ask = ask
        self._log: MemoryLog | None = None
        self._session: Remembering | None = None
        self._options = options
        self._has_time = bool(bounds.get("max_time_s"))
        given = bounds.get("max_output_tokens")
        self._max_output_tokens = find_longest_output(given) if given else 0

    @classmethod
    def from_yaml(cls, path: str | Path, agent_name: str = "", **options: Any) -> Agent[str]:
        """Return the agent `agent_name` that a YAML file describes; if the name is empty, the
        file's only agent.

        Args:
            options: the options of `Agent`; each overrides what the file says.

        Raises:
            SettingsError: the file cannot be used; the text names the faulty entry and the remedy.
        """
        granted = _grant(options)
        has_model = bool({"model", "llm_model"} & set(options))
        found = load_description(Path(path), agent_name, granted=granted, has_model=has_model)
        described: dict[str, Any] = {
            name: bound
            for name in _BOUNDS
            if (bound := getattr(found.bounds, name)) != getattr(AgentBounds(), name)
        }
        for name in ("tools", "protocol", "instruction", "model", "memory"):
            described[name] = getattr(found, name)
        if found.api_key:
            described["openai_api_key"] = Secret(found.api_key)
        if found.memory is not None and isinstance(options.get("memory"), str):
            options["memory"] = replace(found.memory, name=options["memory"])
        own = {name: given for name, given in options.items() if name not in _OF_FILES}
        agent: Agent[str] = Agent(**{**described, **own})
        # a file cannot remove a person's limit
        agent._has_time = bool(options.get("max_time_s"))
        return agent

    def add_tool(
        self, given: Any, thing: Any = None, description: str = "", *, replace: bool = False
    ) -> None:
        """Add a tool for all later runs: a tool or a function, or under the name `given` whatever
        `babyagi.tool` takes, with a description. A thing may also be `FILE.yaml#NAME`, a component,
        a pipeline or an agent of a file.

        Args:
            replace: whether the tool takes the place of one that has the same name.

        Raises:
            ValueError: a tool with this name exists, and `replace` is False.
            SettingsError: the file cannot be used.
        """
        if isinstance(thing, str):
            path, _, target = thing.partition("#")
            made = load_tool(Path(path), target, given, description, granted=_grant(self._options))
        elif thing is not None:
            made = tool(thing, name=given, description=description)
        else:
            (made,) = collect_tools([given])
        others = [other for other in self.tools if not (replace and other.name == made.name)]
        self.tools = require_names([*others, made])

    def add_context(self, name: str, text: str | Callable[[], Any], *, n_calls: int = 0) -> None:
        """Show the model a text in each request from now on, as data under this name. A new text
        takes the place of the one with the same name, and an empty text removes it.

        Args:
            text: the text, or a function, async or not, that is called before each request; what is
                shown is not stored.
            n_calls: how many requests show it; 0 for all.

        Raises:
            ValueError: the name is not 1 to 40 letters, digits and blanks.
        """
        if not _CONTEXT_NAME.fullmatch(name):
            raise ValueError(f"a name must have 1 to 40 letters, digits and blanks, got {name!r}")
        self._context_by_name[name] = _Context(text=text, n_left=n_calls or -1)

    def run_tool(self, name: str, given: str) -> Observation:
        """Call one of the agent's tools as its model would, with text or JSON, and return its
        outcome. No model is asked, unless the tool does."""

        async def run() -> Observation:
            async with self.by_hand(given) as hand:
                call = ToolCall(id="by hand", name=name, arguments=given)
                return (await hand.call(call))[0]

        return run_blocking(run())

    def run(
        self,
        question: str,
        *,
        history: History = (),
        on_signal: OnSignal | None = None,
        on_text: OnText | None = None,
    ) -> Run[T]:
        """Ask the agent a question and return the run, as `run_async` does, but from code that is
        not async or in a notebook."""
        return run_blocking(
            self.run_async(question, history=history, on_signal=on_signal, on_text=on_text)
        )

    def run_batch(self, questions: Sequence[str]) -> list[Run[T]]:
        """Ask independent questions, at most `max_parallel` at once; return their runs, in
        order."""

        async def run_all() -> list[Run[T]]:
            slots = asyncio.Semaphore(max(1, self.bounds.max_parallel))

            async def run_one(question: str) -> Run[T]:
                async with slots:
                    return await self.run_async(question)

            return await side_by_side([run_one(question) for question in questions])

        return run_blocking(run_all())

    async def run_async(
        self,
        question: str,
        *,
        history: History = (),
        on_signal: OnSignal | None = None,
        on_text: OnText | None = None,
    ) -> Run[T]:
        """Ask the agent a question, and return the run that answers it.

        Args:
            history: an earlier run that this question continues, or its `messages`.
            on_signal: receives every step as it happens.
            on_text: receives each piece of text that the model writes, as it arrives: answers, and
                text around its calls.

        Raises:
            BabyagiError: its text says what to do. Errors of the model or of a tool are in the run
                instead.
        """
        async with aclosing(self._tell(question, history, on_text)) as signals:
            async for signal in signals:
                if on_signal is not None:
                    on_signal(signal)
                if isinstance(signal, RunEnded):
                    run: Run[T] = signal.run
        return run

    def iter(
        self, question: str, *, history: History = (), on_text: OnText | None = None
    ) -> Told[Signal]:
        """Ask the agent a question, and return what happens as signals, to be read with `for` or
        `async for`; the last one is `RunEnded`. Arguments and errors are those of `run_async`."""
        return Told(lambda: self._tell(question, history, on_text))

    async def _tell(
        self, question: str, history: History, on_text: OnText | None
    ) -> AsyncGenerator[Signal, None]:
        async with self._remember() as memory, self._open_desk(question, on_text) as desk:
            messages, n_told = self._messages(question, history), 0
            if memory is not None:
                messages = await memory.place(messages, question)
            while True:
                journal = await desk.open_journal(has_person=self._ask is not None)
                executor = self._open_executor(journal)
                n = 0
                try:
                    async with aclosing(executor.iter(messages)) as signals:
                        async for signal in signals:
                            n += 1
                            # after a person's answer the journal replays everything before it
                            if n <= n_told:
                                continue
                            n_told = n
                            if isinstance(signal, RunEnded):
                                ended = await desk.settle(signal, executor, messages)
                                yield await _keep_turn(memory, question, ended)
                            else:
                                yield signal
                    return
                except ParkedError:
                    if self._ask is None:
                        raise
                    await desk.put_questions(self._ask)

    @asynccontextmanager
    async def by_hand(self, question: str, *, history: History = ()) -> AsyncIterator[ByHand]:
        """Yield a run that you drive step by step: `plan`, `call`, or both as `step`. The agent's
        memory is not used.

        async with agent.by_hand("What do two teas cost?") as hand:
            while not hand.is_done:
                print(await hand.plan())
                print(await hand.call())
        """
        messages = self._messages(question, history)
        async with self._open_desk(question) as desk:
            yield ByHand(self._open_executor(await desk.open_journal()), messages)

    def _messages(self, question: str, history: History) -> tuple[Message, ...]:
        earlier = history.messages if isinstance(history, Run) else tuple(history)
        told, asked = ask_agent(self.instruction, Passage(text=question, origin="person"))
        told = instruct([told], self.output.instruction)[0] if self.output else told
        return (told, *earlier, asked)

    def _open_executor(self, journal: Journal) -> Executor:
        executor = Executor(
            tools=self.tools,
            calls=_WithContext(journal, self._context_by_name),
            protocol=self.protocol,
            bounds=self.bounds,
            output=self.output,
        )
        executor.running.agent = self
        return executor

    async def __aenter__(self) -> Agent[T]:
        """Begin a conversation, during which the memory is updated in the background. The exit
        waits, for a bounded time, until the memory contains the last turns."""
        async with AsyncExitStack() as stack:
            memory = self._open_memory(is_conversation=True)
            self._session = await stack.enter_async_context(memory)
            self._leave = stack.pop_all()
        return self

    async def __aexit__(self, *about: Any) -> None:
        self._session = None
        await self._leave.__aexit__(*about)

    async def recall(self) -> Known:
        """Return the content of the agent's memory: turns, summary, facts. It is empty if the agent
        has no memory."""
        return await self._open_log().read() if self.memory is not None else Known()

    async def forget(self) -> bool:
        """Delete the content of the agent's memory. Return whether there was any."""
        return await self._open_log().forget() if self.memory is not None else False

    @asynccontextmanager
    async def _remember(self) -> AsyncIterator[Remembering | None]:
        """Yield the agent's memory: the open conversation's, or one opened for this run; None if
        the agent has no memory."""
        if self._session is not None or self.memory is None:
            yield self._session
            return
        async with self._open_memory() as memory:
            yield memory

    def _open_memory(self, *, is_conversation: bool = False) -> Remembering:
        if self.memory is None:
            raise ValueError("a conversation needs a memory: Agent(…, memory=ConversationMemory())")
        return Remembering(
            self.memory,
            self._open_log(),
            open_calls=self._open_memory_calls,
            is_conversation=is_conversation,
        )

    def _open_log(self) -> MemoryLog:
        if self._log is None:
            name = self.memory.name if self.memory else ""
            path = path_of(load_here({}).home, name) if name else None
            self._log = MemoryLog(path, clock=utc_now, new_id=partial(secrets.token_hex, 8))
        return self._log

    @asynccontextmanager
    async def _open_memory_calls(self, used: Usage) -> AsyncIterator[Journal | None]:
        """Yield the journal for the calls that update the memory, limited to what `used` leaves of
        the run's limits; None if a limit is used up."""
        async with self._open_desk("the update of the memory", used=used) as desk:
            yield await desk.open_journal() if desk.has_room else None

    def as_tool(self, name: str, description: str) -> Tool:
        """Return this agent as a tool for another agent, whose model, journal and limits it then
        uses."""
        return build_agent_tool(
            name,
            description,
            instruction=self.instruction,
            tools=self.tools,
            bounds=self.bounds,
            protocol=self.protocol,
        )

    @asynccontextmanager
    async def _open_desk(
        self, question: str, on_text: OnText | None = None, *, used: Usage | None = None
    ) -> AsyncIterator[_Desk]:
        """Open store, objective and model for one question. `used`: what another run has already
        used of the same limits."""
        if not isinstance(question, str):
            raise TypeError(f"a question is text, not {type(question).__name__}")
        async with AsyncExitStack() as stack:
            store = MemoryTaskStore(utc_now)
            stack.push_async_callback(store.close)
            worker = Worker(
                id="agent", name="agent", host="", pid=os.getpid(), lease_until=utc_now()
            )
            limits, model, max_output_tokens = await self._open_model(stack, store, worker)
            left = limits if used is None else _find_left(limits, used)
            spec = ObjectiveSpec(
                text=question,
                initial_task=question,
                limits=raise_by_kept_back(left or limits),
                model_by_role={Role.EXECUTION: model.name},
                embedding_space="none",
                approval=Approval.NONE,
                prompt_version="agent",
            )
            objective, _ = await store.create_objective(spec, uid="agent")
            backends = Backends(
                store=store,
                models={Role.EXECUTION: model},
                embedder=HashEmbedder(),
                gate=Gate(),
                sleep=asyncio.sleep,
                max_output_tokens=self._max_output_tokens or max_output_tokens,
                on_piece=None if on_text is None else lambda piece: on_text(piece.text),
            )
            yield _Desk(
                store=store,
                worker=worker,
                objective=objective,
                backends=backends,
                has_room=left is not None,
            )

    async def _open_model(
        self, stack: AsyncExitStack, store: MemoryTaskStore, worker: Worker
    ) -> tuple[Limits, ChatModel, int]:
        """Return the limits of a run, the opened model, and how many tokens the settings allow for
        an answer. The limits contain no time limit if `max_time_s` is an option of the agent:
        `AgentBounds` applies it."""
        if not isinstance(self._model, str):
            none = {"max_tasks": 0, "max_time_s": 0, **dict.fromkeys(_LIMITS, 0)}
            return Limits(**{**none, **self._options}), self._model, 0
        given = dict(self._options)
        if self._client:
            given.setdefault("openai_base_url", str(self._client.base_url))
        if self._model:
            given |= {"llm_model": self._model, "role_models": f"execution={self._model}"}
        settings = load_here(given)
        name = settings.model_by_role[Role.EXECUTION]
        if not self._client and (missing := missing_key(settings, [name])):
            raise missing
        app = App(settings, store, identity=worker)
        limits = replace(app.limits([Role.EXECUTION]), max_tasks=0)
        limits = replace(limits, max_time_s=0) if self._has_time else limits
        opening = app.models.open_role(Role.EXECUTION, client=self._client)
        model = await stack.enter_async_context(opening)
        return limits, model, settings.longest_output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What one question needs: a store in memory, an objective with one task for the question, a
    worker to claim it, and the model."""

    store: MemoryTaskStore
    worker: Worker
    objective: Objective
    backends: Backends
    has_room: bool = True  # False: its limits are reached

    async def open_journal(self, *, has_person: bool = False) -> Journal:
        await self.store.register_worker(self.worker, lease_s=LEASE_S)
        await self.store.join_objective(self.worker.id, self.objective.id)
        claim: Claim | None = await self.store.claim_task(self.objective.id, self.worker.id)
        if claim is None:
            raise NotFoundError(
                "the agent's run on this question has already ended",
                fix="call `run` with the question to begin a new run",
                guide="tools",
            )
        return Journal(
            self.backends,
            fence=claim.fence,
            prefix="1/",
            approval=Approval.NONE,
            has_person=has_person,
        )

    async def settle(
        self, ended: RunEnded, executor: Executor, messages: Sequence[Message]
    ) -> RunEnded:
        """Return `ended` with the usage of the whole run, including calls that tools made, and with
        the messages of the conversation."""
        objective = await self.store.objective(self.objective.id)
        said = executor.transcript(messages, ended.run)
        return RunEnded(run=replace(ended.run, usage=objective.usage, messages=said))

    async def put_questions(self, ask: Ask) -> None:
        for step in await self.store.inbox(self.objective.id):
            said: str = await call_either(ask, describe(step))
            await self.store.answer_step(step.id, output=take_words(step, said).to_json())


class ByHand:
    """An agent's run on one question that a program drives step by step; see `Agent.by_hand`.

    Attributes:
        messages: the messages that every prompt of the run begins with.
        steps: the steps so far. The next step is planned from this list, so a program may change
            it.
    """

    def __init__(self, executor: Executor, messages: Sequence[Message]) -> None:
        self.messages = tuple(messages)
        self.steps: list[AgentStep] = []
        self._executor = executor
        self._planned: Asked[AgentDecision] | None = None

    @property
    def is_done(self) -> bool:
        """Return whether the model has answered or given up, or a tool has ended the run."""
        has_ended = bool(self.steps) and not isinstance(self.steps[-1].decision, Act)
        return has_ended or self._executor.running.is_over

    @property
    def output(self) -> str:
        """Return the text of the answer; empty until there is one."""
        last = self.steps[-1].decision if self.steps else None
        return last.output if isinstance(last, Finish) else self._executor.running.answer or ""

    async def plan(self) -> AgentDecision:
        """Ask the model for the next step, and return its decision: calls to make, an answer, or
        that it gives up. The calls are not made yet. A second `plan` without `call` returns the
        same decision."""
        self._planned = await self._executor.plan(self.messages, self.steps)
        return self._planned.value

    async def call(self, *calls: ToolCall) -> list[Observation]:
        """Make the planned calls, append the step to `steps`, and return the outcome of each
        call. With `calls`, make these instead, and leave `steps` as they are."""
        planned, n = self._planned, len(self.steps) + 1
        if calls:
            return await self._executor.call(Act(calls=calls), n=n)
        if planned is None:
            raise RuntimeError("no step is planned: use plan() before call()")
        given = await self._executor.call(planned.value, n=n)
        self.steps.append(to_step(n, planned, given))
        self._planned = None
        return given

    async def step(self) -> AgentStep:
        """Run `plan`, then `call`, and return the new step."""
        await self.plan()
        await self.call()
        return self.steps[-1]


@dataclass(slots=True, kw_only=True)
class _Context:
    """A text that stands in the requests of an agent; `n_left` is negative if it stays."""

    text: str | Callable[[], Any]
    n_left: int


class _WithContext(PassedOn):
    """Adds the texts of `Agent.add_context` to the first message of each request."""

    def __init__(self, calls: Calls, context_by_name: dict[str, _Context]) -> None:
        super().__init__(calls)
        self._context_by_name = context_by_name

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion:
        shown = []
        for name, one in list(self._context_by_name.items()):
            text = await call_either(one.text) if callable(one.text) else one.text
            shown += [fence(name, Passage(text=text, origin="program"))] if text else []
            one.n_left -= one.n_left > 0
            if one.n_left == 0 or not one.text:
                del self._context_by_name[name]
        first, *rest = prompt.messages
        first = replace(first, text="\n\n".join((first.text, *shown)))
        asked = replace(prompt, messages=(first, *rest))
        return await self._calls.complete(path, asked, role=role)


def _grant(options: Mapping[str, Any]) -> Granted:
    """Return what a file may use, by the settings and the options of an agent."""
    mine = {name: given for name, given in options.items() if name in _KEYS_AND_HOSTS}
    return grant_to_files(load_here(mine))


def _read_memory(given: ConversationMemory | str | None) -> ConversationMemory | None:
    kind = ConversationSummaryMemory(name=given) if isinstance(given, str) else given
    if kind is not None and (kind.name or isinstance(given, str)):
        require_name(kind.name)
    return kind


async def _keep_turn(memory: Remembering | None, question: str, ended: RunEnded) -> RunEnded:
    """Store the question and its answer in the memory, if there is one and the run has an answer;
    return `ended` unchanged."""
    run = ended.run
    if memory is not None and run.stopped is Stopped.FINISH:
        key, made_from = secrets.token_hex(8), join_origins(run.origins)
        await memory.keep(question, run.text, key=key, made_from=made_from, used=run.usage)
    return ended


def _find_left(limits: Limits, used: Usage) -> Limits | None:
    """Return the limits minus what was used; None if a limit is used up."""
    spent = {"max_calls": used.calls, "max_tokens": used.tokens, "max_cost_usd": used.cost_usd}
    given = {name: getattr(limits, name) for name in spent if getattr(limits, name)}
    left = {name: limit - spent[name] for name, limit in given.items()}
    return replace(limits, **left) if all(one > 0 for one in left.values()) else None


def _require_options(model: str | ChatModel | AsyncOpenAI, options: Mapping[str, Any]) -> None:
    known = names_of(AgentOptions) | names_of(SettingOptions) | declared_fields().keys()
    known = known if isinstance(model, str) or is_client(model) else _BOUNDS | {*_LIMITS, "memory"}
    require_known(options, known, "Agent", others=_PARAMETERS)
