"""What an executor tells while it works, in this order: started, (asked, decided, (tool started,
tool ended)*, step ended)*, ended.

A signal is passing: what must last is in the journal.
"""

from __future__ import annotations

from dataclasses import dataclass

from babyagi.llm.prompt import Message, Prompt, ToolCall
from babyagi.react.steps import Decision, Run, Step
from babyagi.tools.base import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDecided:
    """What the model decided in step `n`, and the prompt as it was last asked."""

    n: int
    decision: Decision
    prompt: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """Call `m` (from 1) of step `n`; calls that run side by side have started before the first of
    them ends."""

    n: int
    m: int
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    n: int
    m: int
    call: ToolCall
    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    run: Run


Signal = RunStarted | ModelAsked | ModelDecided | ToolStarted | ToolEnded | StepEnded | RunEnded
