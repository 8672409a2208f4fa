"""The loops to compare with, on a folder of texts: one direct call, a ReAct loop, a plain loop of
executing and planning. Each is as short as such a loop is usually written."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from support.uplift.cases import Case

Messages = list[dict[str, str]]
Ask = Callable[[Messages], Awaitable[str]]
"""Returns the model's reply, or raises `PromptTooLongError`."""

MAX_CALLS = 40
MAX_SHRINKS = 40
CUT_SHARE = 0.9  # of the files, kept where the prompt was too long


class PromptTooLongError(Exception):
    """The server says that the prompt does not fit the model's context."""


def _messages(system: str, user: str) -> Messages:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


async def _ask_with(ask: Ask, system: str, texts: str, rest: str) -> str:
    """Ask with these texts before the rest; they are cut at the end until the prompt fits."""
    for _ in range(MAX_SHRINKS):
        try:
            return await ask(_messages(system, f"{texts}\n\n{rest}"))
        except PromptTooLongError:
            texts = texts[: int(len(texts) * CUT_SHARE)]
    raise PromptTooLongError


def _show(text_by_path: Mapping[str, str]) -> str:
    return "\n\n".join(f"=== {path}\n{text}" for path, text in text_by_path.items())


# -- one call
# --------------------------------------------------------------------------------------------------

DIRECT = "You answer a question from the files of a folder."


async def run_direct(ask: Ask, case: Case) -> str:
    """Return the reply to one call whose prompt holds the whole folder, cut at the context."""
    return await _ask_with(ask, DIRECT, _show(case.text_by_path), f"Question: {case.question}")


# -- reasoning and acting in turn
# --------------------------------------------------------------------------------------------------

REACT = """You answer a question from the files of a folder, step by step. Your tools:
list_files
read_file PATH LINE: the file from this line on

Each reply of yours is a line "Thought: what you know and need next", and then either a line
Action: the tool with what it takes
or, as soon as you know enough,
Final Answer: the whole answer"""
OBSERVATION, FINAL = "Observation:", "Final Answer:"
READ_BYTES = 6_000
LEFT_OUT = f"{OBSERVATION} (left out)"
MIN_LEFT_OUT_CHARS = 300  # a list of files stays
_ACTION = re.compile(r"^Action:\s*(list_files|read_file)\b[ \t(]*(.*)$", re.MULTILINE)


async def run_react(ask: Ask, case: Case) -> str:
    """Return the final answer of a loop with two tools. A reply without an action is one."""
    messages, reply = _messages(REACT, f"Question: {case.question}"), ""
    for _ in range(MAX_CALLS):
        reply = await _ask_within(ask, messages)
        reply = reply.partition(OBSERVATION)[0].strip()
        action = _ACTION.search(reply)
        if FINAL in reply or action is None:
            break
        seen = _act(case.text_by_path, action[1], action[2])
        messages += [
            {"role": "assistant", "content": reply},
            {"role": "user", "content": f"{OBSERVATION} {seen}"},
        ]
    return reply.rpartition(FINAL)[2].strip()


async def _ask_within(ask: Ask, messages: Messages) -> str:
    """Ask; where the prompt is too long, the oldest long observation is left out of it for good."""
    while True:
        try:
            return await ask(messages)
        except PromptTooLongError:
            seen = (m for m in messages if m["content"].startswith(OBSERVATION))
            oldest = next((m for m in seen if len(m["content"]) > MIN_LEFT_OUT_CHARS), None)
            if oldest is None:
                raise
            oldest["content"] = LEFT_OUT


def _act(text_by_path: Mapping[str, str], tool: str, given: str) -> str:
    if tool == "list_files":
        return "\n".join(text_by_path)
    words = given.strip().strip("`\"')").split()
    path = next((word.strip("`\"',") for word in words), "")
    if path not in text_by_path:
        return f"there is no file {path!r}"
    lines = text_by_path[path].splitlines()
    first = int(words[1]) if len(words) > 1 and words[1].isdigit() else 1
    shown, room = list[str](), READ_BYTES
    for line in lines[max(0, first - 1) :]:
        room -= len(line.encode()) + 1
        if room < 0 and shown:
            break
        shown.append(line)
    head = f"{path}, lines {first} to {first + len(shown) - 1} of {len(lines)}"
    return "\n".join([head, *shown])


# -- executing and planning in turn
# --------------------------------------------------------------------------------------------------

DO = (
    "You do one task of a larger objective, from the files of a folder. Give the result itself; if "
    "something is missing, say what."
)
PLAN = (
    "You plan what an objective still needs. Propose tasks that read the files which it needs, "
    "each by the file's name, and that no finished or queued task covers. Reply with a JSON list "
    "of strings."
)
REPORT = "You answer an objective from the results of its tasks."
FILES_BYTES = 12_000  # of texts that a task is shown
RESULTS_CHARS = 8_000
MAX_EXECUTIONS = (MAX_CALLS - 1) // 2


@dataclass(slots=True, kw_only=True)
class _Board:
    case: Case
    result_by_task: dict[str, str]
    queue: deque[str]

    @property
    def results(self) -> str:
        told = "\n###".join(f"{task}\n{text}" for task, text in self.result_by_task.items())
        return told[-RESULTS_CHARS:]

    @property
    def files(self) -> str:
        return "\n".join(self.case.text_by_path)

    def texts_for(self, task: str) -> str:
        """The files that the task names, or else the beginning of the folder."""
        texts = self.case.text_by_path
        named = {path: text for path, text in texts.items() if path in task} or texts
        shown = _show(named).encode()[:FILES_BYTES]
        return shown.decode("utf-8", "ignore")


async def run_plain(ask: Ask, case: Case) -> str:
    """Return the report of a loop that begins with the objective as its task, and plans from each
    result."""
    board = _Board(case=case, result_by_task={}, queue=deque([case.question]))
    objective = f"Objective: {case.question}"
    while board.queue and len(board.result_by_task) < MAX_EXECUTIONS:
        task = board.queue.popleft()
        rest = (
            f"{objective}\nFiles of the folder:\n{board.files}\nEarlier results:\n{board.results}"
            f"\nTask: {task}"
        )
        text = await _ask_with(ask, DO, board.texts_for(task), rest)
        board.result_by_task[task] = text
        listed = "\n".join(f"- {name}" for name in (*board.result_by_task, *board.queue))
        rest = (
            f"{objective}\nFiles of the folder:\n{board.files}\nResults:\n{board.results}\n"
            f"Finished and queued tasks:\n{listed}"
        )
        planned = _read_names(await ask(_messages(PLAN, rest)))
        known = (*board.result_by_task, *board.queue)
        board.queue += [name for name in dict.fromkeys(planned) if name not in known]
    return await ask(_messages(REPORT, f"{objective}\nResults:\n{board.results}"))


def _read_names(reply: str) -> Sequence[str]:
    found = re.search(r"\[.*\]", reply, re.DOTALL)
    try:
        return [name for name in json.loads(found[0]) if isinstance(name, str)] if found else []
    except ValueError:
        return []


BASELINES: Mapping[str, Callable[[Ask, Case], Awaitable[str]]] = {
    "direct": run_direct,
    "react": run_react,
    "plain": run_plain,
}
