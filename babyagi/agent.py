"""An agent for programs: a model, tools, a question in and a run out. The same executor and journal
as in the loop, in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from babyagi.app import App
from babyagi.backends import utc_now
from babyagi.components.description import Granted, load_description
from babyagi.components.kinds import MODEL_KEY, SEARCH_KEY
from babyagi.errors import NotFoundError, ParkedError
from babyagi.inbox import Decision, decide, decisions, describe
from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal
from babyagi.llm.port import ChatModel
from babyagi.react.calling import require_names
from babyagi.react.executor import Executor, OnSignal, ask_agent, build_agent_tool
from babyagi.react.protocols.base import AgentProtocol, fill
from babyagi.react.steps import AgentBounds, AtLimit, Run, RunEnded, Signal
from babyagi.settings.fields import declared_fields
from babyagi.settings.load import load_here, variables_here
from babyagi.settings.values import Secret
from babyagi.tasks import Approval, Claim, Limits, Objective, ObjectiveSpec, Passage, Role, Worker
from babyagi.taskstore.limits import raise_by_kept_back
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.tools.base import Tool
from babyagi.tools.declare import tool as declare_tool

LEASE_S = 365 * 86_400.0  # a run in one process is claimed by nobody else

Ask = Callable[[str], Awaitable[str]]
_BOUNDS = frozenset(field.name for field in fields(AgentBounds))
_OF_FILES = ("agent_hosts", "serpapi_api_key")  # settings that only an agent from a file looks at
_KEYS_AND_HOSTS = ("openai_api_key", *_OF_FILES)
_LIMITS = ("max_calls", "max_tokens", "max_cost_usd")


class Agent:
    """A model with tools, asked one question at a time.

    Args:
        model: a name, as in LLM_MODEL, or a `ChatModel`; without one, LLM_MODEL decides.
        tools: tools, or functions with types and a docstring; another agent by its `as_tool`.
        instruction: what it is told before the question.
        protocol: `auto`, `native`, `json`, `text`, or an `AgentProtocol`.
        ask: shows a person a question and returns their answer; without it a tool that asks ends
            the run with `ParkedError`.
        options: the fields of `AgentBounds` (`max_steps`, `max_errors`, `max_time_s`, `at_limit`,
            …), the limits of one run (`max_calls`, `max_tokens`, `max_cost_usd`), and, for a model
            that is named, settings.

    Raises:
        ValueError: two tools have one name, or a function cannot be a tool.
        TypeError: there is no such option.
    """

    def __init__(
        self,
        model: str | ChatModel = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        instruction: str = "",
        protocol: AgentProtocol | str = "auto",
        ask: Ask | None = None,
        **options: Any,
    ) -> None:
        if "at_limit" in options:
            options["at_limit"] = AtLimit(options["at_limit"])
        self.tools = require_names([_to_tool(given) for given in tools])
        self.bounds = AgentBounds(
            **{name: value for name, value in options.items() if name in _BOUNDS}
        )
        self.protocol = protocol
        self.instruction = instruction or fill("agent")
        self._model = model
        self._ask = ask
        self._options = {name: value for name, value in options.items() if name not in _BOUNDS}
        self._has_time = bool(options.get("max_time_s"))
        for name in self._options.keys() - (
            declared_fields().keys() if isinstance(model, str) else set(_LIMITS)
        ):
            raise TypeError(f"there is no such option here: {name}")

    @classmethod
    def from_yaml(cls, path: str | Path, agent_name: str = "", **options: Any) -> Agent:
        """Return the agent of this name that a file describes in components, pipelines and agents;
        without a name its only one.

        Args:
            options: as for an agent; each goes before what the file says.

        Raises:
            SettingsError: the file cannot be used; the text names the culprit and what to do.
        """
        settings = load_here(
            {name: given for name, given in options.items() if name in _KEYS_AND_HOSTS}
        )
        granted = Granted(
            keys={
                MODEL_KEY: settings.openai_api_key.reveal(),
                SEARCH_KEY: settings.serpapi_api_key.reveal(),
            },
            variables=variables_here(),
            hosts=settings.agent_hosts,
        )
        has_model = bool({"model", "llm_model"} & set(options))
        found = load_description(Path(path), agent_name, granted=granted, has_model=has_model)
        described: dict[str, Any] = {"tools": found.tools, "protocol": found.protocol}
        described |= {
            name: bound
            for name in _BOUNDS
            if (bound := getattr(found.bounds, name)) != getattr(AgentBounds(), name)
        }
        described |= {
            name: given
            for name, given in (("model", found.model), ("openai_api_key", Secret(found.api_key)))
            if given
        }
        agent = cls(
            **{
                **described,
                **{name: given for name, given in options.items() if name not in _OF_FILES},
            }
        )
        # what a file says takes no limit of the person away
        agent._has_time = bool(options.get("max_time_s"))
        return agent

    def add_tool(self, given: Tool | Callable[..., Any], *, replace: bool = False) -> None:
        """Add a tool, from the next run on.

        Raises:
            ValueError: there is one of this name, and `replace` is False.
        """
        tool = _to_tool(given)
        others = [other for other in self.tools if not (replace and other.name == tool.name)]
        self.tools = require_names([*others, tool])

    def run(self, question: str, *, on_signal: OnSignal | None = None) -> Run:
        """As `run_async`, for code that is not async itself."""
        return asyncio.run(self.run_async(question, on_signal=on_signal))

    def run_batch(self, questions: Sequence[str]) -> list[Run]:
        """The runs of several questions, each by itself, in their order; at most `max_parallel` at
        once."""

        async def run_all() -> list[Run]:
            slots = asyncio.Semaphore(max(1, self.bounds.max_parallel))

            async def run_one(question: str) -> Run:
                async with slots:
                    return await self.run_async(question)

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run_one(question)) for question in questions]
            return [task.result() for task in tasks]

        return asyncio.run(run_all())

    async def run_async(self, question: str, *, on_signal: OnSignal | None = None) -> Run:
        """Return the run on the question; `on_signal` is told everything on the way.

        Raises:
            BabyagiError: its text says what to do. What the model or a tool does wrong is in the
            run instead.
        """
        async with aclosing(self.iter(question)) as signals:
            async for signal in signals:
                if on_signal is not None:
                    on_signal(signal)
                if isinstance(signal, RunEnded):
                    run = signal.run
        return run

    async def iter(self, question: str) -> AsyncGenerator[Signal, None]:
        """Yield the signals of a run, the last of them `RunEnded`. Raises as `run_async`."""
        messages, n_told = ask_agent(self.instruction, Passage(text=question, origin="person")), 0
        async with self._open_desk(question) as desk:
            while True:
                executor = Executor(
                    tools=self.tools,
                    calls=await desk.open_journal(),
                    protocol=self.protocol,
                    bounds=self.bounds,
                )
                n = 0
                try:
                    async with aclosing(executor.iter(messages)) as signals:
                        async for signal in signals:
                            n += 1
                            # after an answer of a person the journal gives all that came before it
                            # once more
                            if n > n_told:
                                n_told = n
                                yield (
                                    await desk.settle(signal)
                                    if isinstance(signal, RunEnded)
                                    else signal
                                )
                    return
                except ParkedError:
                    if self._ask is None:
                        raise
                    await desk.put_questions(self._ask)

    def as_tool(self, name: str, description: str) -> Tool:
        """This agent as a tool of another one, which lends it its model, journal and limits."""
        return build_agent_tool(
            name,
            description,
            instruction=self.instruction,
            tools=self.tools,
            bounds=self.bounds,
            protocol=self.protocol,
        )

    @asynccontextmanager
    async def _open_desk(self, question: str) -> AsyncIterator[_Desk]:
        async with AsyncExitStack() as stack:
            store = MemoryTaskStore(utc_now)
            stack.push_async_callback(store.close)
            worker = Worker(
                id="agent", name="agent", host="", pid=os.getpid(), lease_until=utc_now()
            )
            limits, model = await self._open_model(stack, store, worker)
            spec = ObjectiveSpec(
                text=question,
                initial_task=question,
                limits=raise_by_kept_back(limits),
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
            )
            yield _Desk(store=store, worker=worker, objective=objective, backends=backends)

    async def _open_model(
        self, stack: AsyncExitStack, store: MemoryTaskStore, worker: Worker
    ) -> tuple[Limits, ChatModel]:
        """What a run may use, and the model that it asks. The limit of time is the run's own where
        one is given."""
        if not isinstance(self._model, str):
            return Limits(
                **{"max_tasks": 0, "max_time_s": 0, **dict.fromkeys(_LIMITS, 0), **self._options}
            ), self._model
        settings = load_here(
            {
                **self._options,
                **(
                    {"llm_model": self._model, "model_execution": self._model}
                    if self._model
                    else {}
                ),
            }
        )
        app = App(settings, store, identity=worker)
        limits = replace(app.limits([Role.EXECUTION]), max_tasks=0)
        return replace(
            limits, max_time_s=0
        ) if self._has_time else limits, await stack.enter_async_context(
            app.open_model(Role.EXECUTION)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """One task of one objective in memory, and who works on it."""

    store: MemoryTaskStore
    worker: Worker
    objective: Objective
    backends: Backends

    async def open_journal(self) -> Journal:
        await self.store.register_worker(self.worker, lease_s=LEASE_S)
        await self.store.join_objective(self.worker.id, self.objective.id)
        claim: Claim | None = await self.store.claim_task(self.objective.id, self.worker.id)
        if claim is None:
            raise NotFoundError(
                "the question can no longer be worked on",
                fix="ask it again with `run`",
                guide="tools",
            )
        return Journal(self.backends, fence=claim.fence, prefix="1/", approval=Approval.NONE)

    async def settle(self, ended: RunEnded) -> RunEnded:
        """The end with all that the run took, calls within tools included."""
        objective = await self.store.objective(self.objective.id)
        return RunEnded(run=replace(ended.run, usage=objective.usage))

    async def put_questions(self, ask: Ask) -> None:
        for step in await self.store.inbox(self.objective.id):
            said = await ask(describe(step))
            way = Decision.ANSWER if Decision.ANSWER in decisions(step) else Decision.APPROVE
            await self.store.answer_step(step.id, output=decide(step, way, said).to_json())


def _to_tool(given: Tool | Callable[..., Any]) -> Tool:
    if isinstance(given, Agent):
        raise ValueError("an agent needs a name as a tool: agent.as_tool(name, description)")
    return given if isinstance(given, Tool) else declare_tool(given)
