"""Runs an agent: asks the model, makes the tool calls that it asks for, and repeats this until
there is an answer (`Executor`, below).

The first part of this file is self-reflection, which can wrap any tool. The model judges whether
the tool's output fits its arguments. If it does not, the tool is called again with arguments that
the model has rephrased, at most a given number of times. Each call and each judgement is a step
below the path of the tool call: `call/N`, `judge/N`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from babyagi.errors import MalformedReplyError, ToolError, ToolsUnsupportedError
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, fence, shrink
from babyagi.react.asking import Asked, ask, find_abilities
from babyagi.react.protocols.base import (
    WRITTEN_CALL,
    AgentProtocol,
    Conversation,
    fill,
    label_of,
    say,
)
from babyagi.react.protocols.choice import AUTO, HELD, choose_protocol, find_protocol, speak
from babyagi.react.protocols.json import ANSWER, read_object
from babyagi.react.protocols.native import NATIVE
from babyagi.react.protocols.text import NO_CALL
from babyagi.react.steps import (
    ENDS,
    LACKING,
    Act,
    AgentBounds,
    AgentDecision,
    AgentStep,
    AtLimit,
    Fail,
    Finish,
    ModelAsked,
    ModelDecided,
    Run,
    RunEnded,
    RunStarted,
    Signal,
    StepEnded,
    Stopped,
    ToolEnded,
    ToolStarted,
)
from babyagi.react.values import OutputType, read_json
from babyagi.tasks import Effect, Passage, Role, Usage, find_sources
from babyagi.text import clean, disarm
from babyagi.tools.base import (
    MAX_ARGUMENT_CHARS,
    Calls,
    Observation,
    Tool,
    parse_arguments,
    run_composed,
    takes_text,
)
from babyagi.tools.declare import Running, lend
from babyagi.tools.recall import RECALL

MAX_JUDGED_CHARS = 4000
MAX_OUTPUT_TOKENS = 1000

Arguments = Mapping[str, Any]


def with_reflection(tool: Tool) -> Tool:
    """Return the tool with self-reflection: after a call the model judges the output, and may have
    the tool called again with other arguments, at most `tool.reflect` times. If `tool.reflect` is
    0, return the tool unchanged."""
    if not tool.reflect:
        return tool
    inner = replace(tool, reflect=0)

    async def compose(arguments: Arguments, calls: Calls) -> Passage:
        observation, n_changed = await calls.call_tool("call/1", inner, arguments), 0
        for n in range(1, tool.reflect + 1):
            better = await _judge(calls, f"judge/{n}", inner, arguments, observation)
            if better is None or better == arguments:
                break
            arguments, n_changed = better, n
            observation = await calls.call_tool(f"call/{n + 1}", inner, arguments)
        if observation.is_error:
            raise ToolError(observation.passage.text)
        words = json.dumps(arguments, ensure_ascii=False) if n_changed else ""
        told = f"{say('asked_as', words=words)}\n" if words and not tool.return_direct else ""
        return replace(observation.passage, text=told + observation.passage.text)

    return replace(tool, reflect=0, compose=compose, run=run_composed)


async def _judge(
    calls: Calls, path: str, tool: Tool, arguments: Arguments, observation: Observation
) -> Arguments | None:
    """Ask the model to judge a tool call. Return the arguments to try instead; None if the call was
    good or the judgement cannot be read."""

    def read(completion: Completion) -> Arguments | None:
        verdict, _ = read_object(completion.text.strip(), form="expect_verdict")
        if verdict.get("aligned") is not False:
            return None
        try:
            return parse_arguments(tool, json.dumps(verdict.get("input"), ensure_ascii=False))
        except ToolError as error:
            raise MalformedReplyError(error.what) from None

    try:
        return (
            await ask(
                calls, path, _render(tool, arguments, observation), role=Role.EXECUTION, read=read
            )
        ).value
    except MalformedReplyError:
        return None


def _render(tool: Tool, arguments: Arguments, observation: Observation) -> Prompt:
    given = observation.passage
    shown = [
        (
            "tool",
            Passage(
                text=f"{tool.name}: {tool.description}\n{json.dumps(dict(tool.parameters))}",
                origin="program",
            ),
        ),
        ("input", Passage(text=json.dumps(dict(arguments), ensure_ascii=False), origin="model")),
        (label_of(observation), replace(given, text=given.text[:MAX_JUDGED_CHARS])),
    ]
    origins = tuple(dict.fromkeys(origin for _, passage in shown for origin in passage.origins))
    return Prompt(
        messages=(
            Message(speaker=Speaker.SYSTEM, text=fill("reflection"), origins=("program",)),
            Message(
                speaker=Speaker.USER,
                text="\n".join(fence(label, passage) for label, passage in shown),
                origins=origins,
            ),
        ),
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )


# --------------------------------------------------------------------------------------------------
# The executor: asks the model, runs the tools that it calls, and shows it their outcomes, until it
# answers or a bound is reached.
#
# `Executor.iter` is the loop, whose signals everything else consumes. `Executor.plan` and
# `Executor.call` make a single step, for a loop outside. Model and tools are called through
# `Calls`. In a task this is the journal, where the outcome of a call that was made before is read.
#
# Not covered: how a request is written and a reply is read (`protocols/`), and what a bad end
# means to a task (`agents/execution.py`).
# --------------------------------------------------------------------------------------------------

PATH = "execute"
FALLBACK = f"{PATH}/text"  # path of the note that the endpoint refused tools
NO_ANSWER = "The agent was stopped by a limit before it had an answer."
MAX_CALLS_PER_STEP = 8
MAX_ACT_CHARS = MAX_CALLS_PER_STEP * MAX_ARGUMENT_CHARS

# The origin of a message about a call that was not made: it quotes the call of the model.
REFUSED = "model"
UNCALLABLE = frozenset({ANSWER, *ENDS, *NO_CALL})

OnSignal = Callable[[Signal], None]

NumberedCall = tuple[int, ToolCall]
"""A call and its number in the reply, counted from 1."""

T = TypeVar("T")


def require_names(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Check that a model can call each of the tools in every protocol, and return them.

    Raises:
        ValueError: two tools have the same name, or a name has another meaning in a protocol.
    """
    count = Counter(tool.name for tool in tools)
    if twice := [name for name, n in count.items() if n > 1]:
        raise ValueError(f"two tools are called {twice[0]!r}; rename one of them")
    if taken := [name for name in count if name.casefold() in UNCALLABLE]:
        raise ValueError(
            f"a tool cannot have the name {taken[0]!r}, which has another meaning in a reply; "
            "rename the tool"
        )
    return tuple(tools)


class Executor:
    """Runs one agent on one question. The keys of its steps are `execute/N/model` and
    `execute/N/tool/M`, counted from 1. If the model only chose to answer, it is asked for the
    answer at `execute/N/answer`. When the steps are used up, or a call was made too often with the
    same outcome, it is asked for its answer, without tools, at `execute/N/last`. A key that the
    journal holds is not called again.

    Args:
        tools: the tools that the agent may use, each with a unique name that a model can call.
            Tools with `reflect` are wrapped in self-reflection.
        calls: how the model and the tools are called.
        protocol: a protocol, or its name. `auto` chooses one by the abilities of the model, if they
            can be found out. If not, it begins with native tool calls, and changes to text if the
            endpoint refuses tools.
        output: what an answer must be. After any other answer the model is told what is wrong and
            asked again.
        says_lacking: whether the model ends its work with what is lacking, in place of giving up.
            If it does so before it has used a tool to look, it is told once to look first.

    Attributes:
        running: what tools that take a `ToolContext` are lent of the run.
        has_fallen_back: whether the model is asked in labelled text, because the endpoint refused
            tools.
    """

    def __init__(
        self,
        *,
        tools: Sequence[Tool],
        calls: Calls,
        protocol: AgentProtocol | str = "auto",
        bounds: AgentBounds | None = None,
        output: OutputType | None = None,
        says_lacking: bool = False,
    ) -> None:
        self.output = output
        self.running = Running()
        self.has_fallen_back = False
        self.protocol = find_protocol(protocol) if isinstance(protocol, str) else protocol
        self._bounds = bounds or AgentBounds()
        self._calls = calls
        self._tools = require_names([with_reflection(lend(tool, self.running)) for tool in tools])
        self._tool_by_name = {tool.name: tool for tool in self._tools}
        self._says_lacking = says_lacking
        self._may_choose = protocol == AUTO and (bool(tools) or says_lacking)
        self._has_chosen = False
        self._unread = ""  # the last reply that could not be read
        self._n_shrunk = 0

    # -- the loop
    # ----------------------------------------------------------------------------------------------

    async def run(
        self, messages: Sequence[Message], *, on_signal: OnSignal | None = None
    ) -> Run[Any]:
        """Run to the end and return the outcome. Raises what `iter` raises.

        Args:
            on_signal: called with every signal.
        """
        async with aclosing(self.iter(messages)) as signals:
            async for signal in signals:
                if on_signal is not None:
                    on_signal(signal)
        assert isinstance(signal, RunEnded)
        return signal.run

    async def iter(self, messages: Sequence[Message]) -> AsyncGenerator[Signal, None]:
        """Run the agent, and yield a signal for everything that happens; the last one is
        `RunEnded`.

        Raises:
            What `ask` and `Calls` raise, except `MalformedReplyError`: unreadable replies end the
                run.
        """
        until, steps = self._time_limit(), list[AgentStep]()
        stopped, detail, output = None, "", NO_ANSWER
        yield RunStarted(messages=tuple(messages))
        try:
            while stopped is None and not (
                self._bounds.max_steps and len(steps) >= self._bounds.max_steps
            ):
                n = len(steps) + 1
                yield ModelAsked(n=n)
                async with _until(until):
                    planned = await self.plan(messages, steps)
                yield ModelDecided(n=n, decision=planned.value, prompt=planned.prompt)
                observations: list[Observation] = []
                for batch in self._batches(planned.value):
                    for m, call in batch:
                        yield ToolStarted(n=n, m=m, call=call)
                    async with _until(until):
                        given = await self._make(batch, n)
                    observations += given
                    for (m, call), observation in zip(batch, given, strict=True):
                        yield ToolEnded(n=n, m=m, call=call, observation=observation)
                steps.append(to_step(n, planned, observations))
                yield StepEnded(step=steps[-1])
                stopped, detail = self._judge(steps)
        except MalformedReplyError as error:
            stopped, detail = Stopped.MAX_ERRORS, error.what
        except _TimeIsUpError:
            stopped, detail = (
                Stopped.MAX_TIME,
                f"the time limit of {self._bounds.max_time_s:g} s has passed",
            )
            until = self._time_limit()  # new time for the last question
        is_at_limit = stopped in (None, Stopped.MAX_TIME, Stopped.REPEATED)
        if is_at_limit and self._bounds.at_limit is AtLimit.GENERATE:
            steps, output = await self._generate(messages, steps, until)
        yield RunEnded(run=self._conclude(steps, stopped or Stopped.MAX_STEPS, detail, output))

    # -- step by step
    # ----------------------------------------------------------------------------------------------

    async def plan(
        self, messages: Sequence[Message], steps: Sequence[AgentStep], *, is_last: bool = False
    ) -> Asked[AgentDecision]:
        """Ask the model for its next decision after these steps, but make no tool call.

        Args:
            is_last: whether the model must answer now, because no further call can be made.

        Raises:
            MalformedReplyError: no reply could be read.
            Whatever else `ask` raises.
        """
        await self._choose_protocol()
        n, self._unread = len(steps) + 1, ""
        conversation = self._converse(messages, steps, is_last=is_last)
        # If the time ended during the tools of a step, its `model` path already holds a reply,
        # which is not an answer to the last question.
        path = f"{PATH}/{n}/{'last' if is_last else 'model'}"
        while True:
            protocol, conversation = speak(self.protocol, conversation)
            try:
                asked = await self._ask(protocol, conversation, path)
                if not (isinstance(asked.value, Finish) and not asked.value.output):
                    return self._look_first(asked, steps) if not is_last else asked
                chosen = Message(
                    speaker=Speaker.ASSISTANT,
                    text=asked.value.log,
                    origins=(f"model:{asked.completion.model}",),
                )
                answered = await self._ask(
                    protocol, replace(conversation, chosen=chosen), f"{PATH}/{n}/answer"
                )
                return replace(answered, usage=asked.usage + answered.usage)
            except ToolsUnsupportedError:
                if not self._may_choose or self.has_fallen_back:
                    raise
                self.has_fallen_back = bool(await self._calls.keep(FALLBACK, "text"))
                self.protocol = find_protocol("text")

    async def _ask(
        self, protocol: AgentProtocol, conversation: Conversation, path: str
    ) -> Asked[AgentDecision]:
        read = partial(self._read, protocol, conversation)
        prompt = self._render(protocol, conversation)
        try:
            asked = await ask(
                self._calls, path, prompt, role=Role.EXECUTION, read=read, may_be_cut=True
            )
        except _UnreadableError as error:
            raise MalformedReplyError(say("unreadable", why=str(error))) from None
        self._n_shrunk += asked.n_shrunk
        return asked

    async def call(self, decision: AgentDecision, *, n: int) -> list[Observation]:
        """Make the tool calls of step `n`, and return an observation for each."""
        return [
            observation
            for batch in self._batches(decision)
            for observation in await self._make(batch, n)
        ]

    def _batches(self, decision: AgentDecision) -> list[list[NumberedCall]]:
        """Divide the calls of a decision, in their order, into batches. The calls of one batch run
        in parallel, at most `max_parallel`. A call that may wait for a person runs alone, so that
        no other call is in flight if the task is released while it waits."""
        calls = decision.calls if isinstance(decision, Act) else ()
        batches: list[list[NumberedCall]] = []
        is_open = False
        for m, call in enumerate(calls, start=1):
            tool = self._tool_by_name.get(call.name)
            is_alone = tool is not None and tool.may_wait
            if is_open and not is_alone and len(batches[-1]) < self._bounds.max_parallel:
                batches[-1].append((m, call))
            else:
                batches.append([(m, call)])
            is_open = not is_alone
        return batches

    async def _make(self, batch: Sequence[NumberedCall], n: int) -> list[Observation]:
        """Make the calls of a batch of step `n`, and return the observation of each. Raises
        whatever `Calls.call_tool` raises; the other calls of the batch are then cancelled."""
        return await side_by_side(
            [self._observe(call, m, f"{PATH}/{n}/tool/{m}") for m, call in batch]
        )

    async def _observe(self, call: ToolCall, m: int, path: str) -> Observation:
        if call.name == LACKING:
            return Observation(passage=Passage(text=say("look_first"), origin="program"))
        if m > MAX_CALLS_PER_STEP:
            return _refused(f"not run: at most {MAX_CALLS_PER_STEP} calls at once")
        tool = self._tool_by_name.get(call.name)
        if tool is None:
            known = ", ".join(self._tool_by_name)
            return _refused(f"there is no tool {call.name[:100]!r}; there are: {known}")
        try:
            arguments = parse_arguments(tool, call.arguments)
        except ToolError as error:
            return _refused(error.what)
        return await self._calls.call_tool(path, tool, arguments)

    # -- details
    # ----------------------------------------------------------------------------------------------

    async def _choose_protocol(self) -> None:
        """With `auto`, choose a protocol that works with the model, if the model's abilities can be
        found out. If this try continues after an interruption, the protocol that it chose before is
        kept."""
        if self._has_chosen or not self._may_choose:
            return
        self._has_chosen, known = True, self._calls.abilities(Role.EXECUTION)
        fallback, path = await self._calls.kept(FALLBACK), f"{PATH}/protocol"
        self.has_fallen_back = fallback is not None
        name = fallback or (known and await self._calls.kept(path))
        if known is not None and not name:
            known = await self._find_abilities(known)
            name = await self._calls.keep(path, choose_protocol(known))
        self.protocol = find_protocol(name) if name else self.protocol

    async def _find_abilities(self, known: Abilities) -> Abilities:
        # without tools, a server is not probed for its way of calling them: plain text will do
        model = self._calls.learning_model(Role.EXECUTION)
        if model is None or known.takes_tools is not None or not self._tools:
            return known
        async with model.probing:
            if model.abilities.takes_tools is None:  # else another task has probed it meanwhile
                ask_at = partial(self._calls.complete, role=Role.EXECUTION)
                await find_abilities(ask_at, f"{PATH}/probe", model)
        return model.abilities

    def _time_limit(self) -> float | None:
        """Return when the time of a run that begins now is over, by the event loop's clock."""
        max_time_s = self._bounds.max_time_s
        return asyncio.get_running_loop().time() + max_time_s if max_time_s else None

    def _converse(
        self, messages: Sequence[Message], steps: Sequence[AgentStep], *, is_last: bool
    ) -> Conversation:
        trim = self._bounds.trim
        return Conversation(
            messages=tuple(messages),
            steps=trim(steps) if trim else steps,
            tools=() if is_last else self._tools,
            earlier_tools=self._tools if is_last else (),
            max_output_tokens=self._bounds.max_output_tokens,
            is_brief=self._calls.abilities(Role.EXECUTION) is not None,
            says_lacking=self._says_lacking,
            is_last=is_last,
        )

    def _render(self, protocol: AgentProtocol, conversation: Conversation) -> Prompt:
        """Return the request. If earlier requests of the run had to be cut to fit, this request is
        cut the same number of times."""
        prompt = protocol.render(conversation)
        if self._bounds.stop_words:
            prompt = replace(
                prompt, stop=tuple(dict.fromkeys((*prompt.stop, *self._bounds.stop_words)))
            )
        if (
            self.output is not None
            and self.output.strict
            and _is_answer_bare(protocol, conversation)
        ):
            # many endpoints refuse a schema together with tools, so with tools it is sent only
            # after a bad answer
            prompt = replace(
                prompt,
                schema_name="answer",
                schema=self.output.strict,
                is_schema_late=bool(prompt.tools),
            )
        for _ in range(self._n_shrunk):
            prompt = shrink(prompt) or prompt
        return prompt

    def _read(
        self, protocol: AgentProtocol, conversation: Conversation, completion: Completion
    ) -> AgentDecision:
        try:
            decision = _read(protocol, conversation, completion)
            if self.output is not None and isinstance(decision, Finish) and decision.output:
                self.output.read(decision.output)
            self._unread = ""
            return decision
        except MalformedReplyError as error:
            self._unread = completion.text
            raise self._malformed(error) from None

    def _look_first(
        self, asked: Asked[AgentDecision], steps: Sequence[AgentStep]
    ) -> Asked[AgentDecision]:
        """Return the decision. If the model says for the first time that something is lacking, and
        has not looked with a tool, return a step that tells it to look."""
        said, looking = asked.value, {tool.name for tool in self._tools} - {RECALL}
        has_looked = any(
            call.name in (*looking, LACKING)
            for step in steps
            if isinstance(step.decision, Act)
            for call in step.decision.calls
        )
        if not isinstance(said, Fail) or not (self._says_lacking and looking) or has_looked:
            return asked
        is_native = asked.completion.tool_calls or not said.log
        call = ToolCall(
            id="lacking" if is_native else WRITTEN_CALL,
            name=LACKING,
            arguments=json.dumps({"what": said.reason}, ensure_ascii=False),
        )
        return replace(asked, value=Act(calls=(call,), thought=said.text, log=said.log))

    def _malformed(self, error: MalformedReplyError) -> Exception:
        """Return the error to raise for a reply that cannot be read. `MalformedReplyError` asks the
        model again, with its text; `_UnreadableError` ends the run."""
        match self._bounds.on_malformed:
            case True:
                return error
            case False:
                return _UnreadableError(error.what)
            case str(text):
                return MalformedReplyError(text)
            case say:
                return MalformedReplyError(say(error.what))

    def transcript(self, messages: Sequence[Message], run: Run[Any]) -> tuple[Message, ...]:
        """Return the conversation of a run as the model saw it, without system messages and with
        the answer at its end. It serves as the history of a further question."""
        conversation = self._converse(messages, run.steps, is_last=False)
        protocol, conversation = speak(self.protocol, conversation)
        shown = protocol.render(conversation).messages
        last = run.steps[-1] if run.steps else None
        log = last.decision.log if last and isinstance(last.decision, Finish) else ""
        answer = Message(
            speaker=Speaker.ASSISTANT,
            text=log or run.text,
            origins=(f"model:{last.model}",) if last else (),
        )
        return (
            *(message for message in shown if message.speaker is not Speaker.SYSTEM),
            *([answer] if answer.text else []),
        )

    def _judge(self, steps: Sequence[AgentStep]) -> tuple[Stopped | None, str]:
        """Return (why the run ends after these steps, details); (None, "") if it continues."""
        match steps[-1].decision:
            case Finish():
                return Stopped.FINISH, say("answer_cut_off") if steps[-1].is_cut else ""
            case Fail(reason=reason):
                return Stopped.FAIL, reason
        if self.running.reason is not None:
            return Stopped.FAIL, self.running.reason
        if self._direct_output(steps[-1]) is not None:
            return Stopped.FINISH, ""
        if repeated := self._find_repeated(steps):
            return Stopped.REPEATED, repeated
        last = steps[-self._bounds.max_errors :] if self._bounds.max_errors else []
        if last and len(last) == self._bounds.max_errors and all(map(_gave_only_errors, last)):
            return (
                Stopped.MAX_ERRORS,
                f"its tool calls failed {len(last)} times in a row; the last one: "
                + last[-1].observations[-1].passage.text[:300],
            )
        return None, ""

    def _find_repeated(self, steps: Sequence[AgentStep]) -> str:
        """Return a sentence about a call of the last step that was made too often with the same
        outcome; "" if there is no such call."""
        most = self._bounds.max_repeats
        if not 0 < most <= len(steps):
            return ""
        # equal calls within one reply count once
        n_by_call = Counter(one for step in steps for one in {fingerprint(*c) for c in _made(step)})
        return next(
            (
                f"{one[0]} was called {n} times with the same arguments and the same outcome"
                for one in (fingerprint(*call) for call in _made(steps[-1]))
                if (n := n_by_call[one]) >= most
            ),
            "",
        )

    def _direct_output(self, step: AgentStep) -> str | None:
        """Return the answer with which a tool has ended the run, or the result of a tool with
        `return_direct`, if one was called and succeeded; else None."""
        if self.running.answer is not None:
            return self.running.answer
        made = [
            (self._tool_by_name.get(call.name), given.passage.text)
            for call, given in _made(step)
            if not given.is_error
        ]
        texts = (text for tool, text in made if tool is not None and tool.return_direct)
        return next((text for text in texts if self._values(text) != ()), None)

    def _conclude(
        self, steps: Sequence[AgentStep], stopped: Stopped, detail: str, output: str
    ) -> Run[Any]:
        said = steps[-1].decision if steps else None
        if isinstance(said, Fail):
            stopped, detail, output = Stopped.FAIL, said.reason, said.text
        elif stopped is Stopped.FINISH:
            output = (
                said.output if isinstance(said, Finish) else self._direct_output(steps[-1]) or ""
            )
        elif stopped in (Stopped.MAX_STEPS, Stopped.MAX_TIME, Stopped.REPEATED):
            detail = detail or f"the limit of steps was reached, after {len(steps)}"
        else:
            output = ""
        return Run(
            text=output,
            values=self._values(output),
            stopped=stopped,
            detail=detail,
            unread=self._unread if stopped is Stopped.MAX_ERRORS else "",
            steps=tuple(steps),
            usage=sum((step.usage for step in steps), Usage()),
            origins=tuple(dict.fromkeys(origin for step in steps for origin in step.origins)),
        )

    def _values(self, text: str) -> tuple[Any, ...] | None:
        """Return the parsed value of an answer in a tuple, or an empty tuple if the answer has no
        such value. Return None if the caller wants text and not a type."""
        if self.output is None:
            return None
        try:
            return (self.output.read(text),) if text not in ("", NO_ANSWER) else ()
        except MalformedReplyError:
            return ()

    async def _generate(
        self, messages: Sequence[Message], steps: list[AgentStep], until: float | None
    ) -> tuple[list[AgentStep], str]:
        """Ask the model once more, without tools. Return the steps, with this one if its reply
        could be used, and the answer, or `NO_ANSWER` in place of it."""
        try:
            async with _until(until):
                asked = await self.plan(messages, steps, is_last=True)
        except (MalformedReplyError, _TimeIsUpError):
            return steps, NO_ANSWER
        steps = [*steps, to_step(len(steps) + 1, asked)]
        return steps, asked.value.output if isinstance(asked.value, Finish) else NO_ANSWER


def _is_answer_bare(protocol: AgentProtocol, conversation: Conversation) -> bool:
    """Return whether the model gives its answer in this protocol as the whole text of its reply,
    without a label or an object around it."""
    is_answer = conversation.chosen is not None or not conversation.tools
    return protocol is NATIVE or (protocol.name == HELD and is_answer)


def _read(
    protocol: AgentProtocol, conversation: Conversation, completion: Completion
) -> AgentDecision:
    decision = protocol.parse(completion, conversation)
    if not isinstance(decision, Act):
        return decision
    if conversation.is_last:
        raise MalformedReplyError(say("no_tool_left"))
    if completion.finish_reason == "length":
        raise MalformedReplyError(say("call_cut_off"))
    n_chars = sum(len(call.name) + len(call.arguments) for call in decision.calls)
    if len(decision.log) + n_chars > MAX_ACT_CHARS:
        raise MalformedReplyError(say("call_too_long", n=str(MAX_ACT_CHARS)))
    return decision


def to_step(
    n: int, asked: Asked[AgentDecision], observations: Sequence[Observation] = ()
) -> AgentStep:
    """Return step `n`, made from the model's decision and the observations of its calls."""
    model = asked.completion.model
    given = (origin for observation in observations for origin in observation.passage.origins)
    return AgentStep(
        n=n,
        decision=asked.value,
        observations=tuple(observations),
        usage=asked.usage,
        model=model,
        origins=tuple(dict.fromkeys((*asked.prompt.origins, f"model:{model}", *given))),
        is_cut=asked.completion.finish_reason == "length",
    )


class _UnreadableError(Exception):
    """A reply cannot be read, and the run must end without another request."""


class _TimeIsUpError(Exception):
    """The time for the whole run has passed. A timeout of a call within the run is a different
    error."""


@asynccontextmanager
async def _until(at: float | None) -> AsyncIterator[None]:
    """Cancel what runs inside at this time of the event loop's clock, and raise `_TimeIsUpError`;
    None: never."""
    try:
        async with asyncio.timeout_at(at) as timeout:
            yield
    except TimeoutError:
        if timeout.expired():
            raise _TimeIsUpError from None
        raise


async def side_by_side(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all coroutines concurrently and return their results. The first error cancels the others
    and is raised unchanged."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _refused(text: str) -> Observation:
    return Observation(passage=Passage(text=text, origin=REFUSED), is_error=True)


def fingerprint(call: ToolCall, observation: Observation) -> tuple[str, bool, str, str]:
    """Return (tool, whether it failed, text of the outcome, arguments) of a call; equal for two
    calls also if the arguments are written differently."""
    arguments = read_json(call.arguments, call.arguments.strip())
    written = json.dumps(arguments, sort_keys=True)
    return call.name, observation.is_error, observation.passage.text, written


def _gave_only_errors(step: AgentStep) -> bool:
    """Return whether all calls of a step failed. A call that a person or the program did not allow
    does not count as failed."""
    return bool(step.observations) and all(
        one.is_error and one.passage.origin not in ("person", "program")
        for one in step.observations
    )


def _made(step: AgentStep) -> list[tuple[ToolCall, Observation]]:
    """Return the calls of a step that were really made, each with its observation."""
    if not isinstance(step.decision, Act):
        return []
    made = zip(step.decision.calls, step.observations, strict=True)
    return [
        (call, observation) for call, observation in made if observation.passage.origin != REFUSED
    ]


# --------------------------------------------------------------------------------------------------
# An agent as a tool of another agent: it takes a question and returns the answer. Its calls are
# steps below the path of the tool call.
# --------------------------------------------------------------------------------------------------


def ask_agent(instruction: str, question: Passage) -> tuple[Message, ...]:
    """Return the messages that put a question to an agent."""
    return (
        Message(speaker=Speaker.SYSTEM, text=instruction, origins=("program",)),
        Message(speaker=Speaker.USER, text=disarm(clean(question.text)), origins=question.origins),
    )


def build_agent_tool(
    name: str,
    description: str,
    *,
    instruction: str,
    tools: Sequence[Tool],
    bounds: AgentBounds,
    protocol: AgentProtocol | str = "auto",
) -> Tool:
    """Return a tool that runs an agent with these tools. The agent uses the model of the agent that
    calls it, under the same journal and limits."""
    tools = tuple(tools)

    async def compose(arguments: Mapping[str, Any], calls: Calls) -> Passage:
        executor = Executor(tools=tools, calls=calls, protocol=protocol, bounds=bounds)
        run = await executor.run(
            ask_agent(instruction, Passage(text=arguments["question"], origin="model"))
        )
        if run.stopped is Stopped.FAIL or run.text in ("", NO_ANSWER):
            raise ToolError(f"{name} found no answer: {run.detail[:300]}")
        return Passage(text=run.text, origin=f"tool:{name}", sources=find_sources(run.origins))

    return Tool(
        name=name,
        description=description,
        parameters=takes_text("question", "All that it needs to know, in words."),
        effect=Effect.ONCE if any(tool.may_wait for tool in tools) else Effect.IDEMPOTENT,
        run=run_composed,
        compose=compose,
    )
