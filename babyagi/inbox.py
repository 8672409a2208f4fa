"""Questions to a person, and what the answer means to the task that asked.

Four kinds of step (a call or question in the journal) wait for a person: a question of the model, a
tool call that needs approval, a tool call with an unknown outcome that must not be repeated, and a
tool that has changed since it was granted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi.errors import SettingsError
from babyagi.files.home import answers_key, remember_lent
from babyagi.tasks import Approval, Passage, Step, Task
from babyagi.taskstore.lifecycle import identity_key
from babyagi.text import SURROGATES, clean
from babyagi.tools.base import Observation

if TYPE_CHECKING:
    from babyagi.taskstore.sql.store import TaskStore

QUESTION = "question"
APPROVAL = "approval"
ONCE = "once"
CHANGED = "changed"
ASKED_AGAIN = "again"  # part of the key of a request whose earlier answer does not count
ALWAYS = "always"
_YES = re.compile(r"(?:y|yes|true|approved?)\b", re.IGNORECASE)
_SURROGATE = re.compile(f"[{SURROGATES}]")


class Decision(StrEnum):
    """What a person can decide about an open step: a call or question that waits for them."""

    ANSWER = "answer"
    APPROVE = "approve"
    ALWAYS = ALWAYS  # these words, and all that goes to the same host in this run
    REJECT = "reject"


_DECISIONS_BY_KIND = {
    QUESTION: (Decision.ANSWER, Decision.REJECT),
    APPROVAL: (Decision.APPROVE, Decision.REJECT),
    ONCE: (Decision.ANSWER, Decision.REJECT),
    CHANGED: (Decision.APPROVE, Decision.REJECT),
}
_REJECTIONS = {
    QUESTION: "The person does not answer this.",
    APPROVAL: "Not done: a person did not allow this call.",
    ONCE: "Not done: a person says that this call was not carried out.",
    CHANGED: "Not done: the tool has changed, and a person did not allow it as it is now.",
}


def write_request(tool: str, arguments: Mapping[str, Any], *, to: str = "") -> str:
    """Return a tool call as text that every store keeps byte by byte; equal calls give equal
    texts. `to`: where it would take words that the person did not say.
    """
    call = {"tool": tool, "arguments": dict(arguments), **({"to": to} if to else {})}
    text = json.dumps(call, sort_keys=True, ensure_ascii=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def read_request(step: Step) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments of the call that waits for a person's decision."""
    fields = json.loads(step.request)
    return fields["tool"], fields["arguments"]


def goes_to(step: Step) -> str:
    """Return the host or tool to which the call would take words; '' if it does not ask that."""
    return str(json.loads(step.request).get("to", "")) if step.kind == APPROVAL else ""


def words_of(step: Step) -> str:
    """Return what a person answered to a question; '' if they refused to."""
    said = Observation.from_json(step.output or "")
    return "" if said.is_error or said.passage.origin != "person" else said.passage.text


def find_lasting(answered: Sequence[Step]) -> dict[str, bool]:
    """Return, by host or tool, whether words may go there in the rest of the run: `always` holds
    for either, and a refusal for a host."""
    lasting: dict[str, bool] = {}
    for step in answered:
        to, said = goes_to(step), Observation.from_json(step.output or "")
        is_host = to != read_request(step)[0]
        if to and (is_host if said.is_error else said.passage.text == ALWAYS):
            lasting[to] = not said.is_error
    return lasting


def describe(step: Step) -> str:
    """Return what the step asks the person, in words. Text of a model in it is kept as the model
    wrote it, except for control characters."""
    tool, arguments = read_request(step)
    given = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
    call = f"{tool}({', '.join(given)})"
    again = ""
    if ASKED_AGAIN in step.key.split("/"):
        again = (
            " (asked again: an answer that was not given in the home of the worker that asks does "
            "not count)"
        )
    match step.kind:
        case "question":
            return clean(str(arguments.get("question", call)))
        case "approval" if to := goes_to(step):
            return f"may these words be sent to {clean(to)}?{again} {clean(call)}"
        case "approval":
            return f"may this call be made?{again} {clean(call)}"
        case "changed":
            return (
                f"{clean(tool)} has changed since the objective was started; may it be used with "
                f"its new description?{again}"
            )
        case _:
            return f"this call may have been made; what was its outcome?{again} {clean(call)}"


def find_origins(step: Step, *, task: Task, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the origins (a person, a model, files, pages …) of all texts that the same try of the
    task had read before it asked, each once, in order. `steps`: all steps of the task."""
    prefix = step.key.partition("/")[0] + "/"
    before = [one.origins for one in steps if one.key.startswith(prefix) and one.id < step.id]
    return tuple(dict.fromkeys(chain(task.origins, *before)))


def asking_task(step: Step) -> int:
    """Return the id of the task that waits for a person's answer to this step."""
    return int(step.owner.removeprefix("task:"))


def write_change(tool: str, *, before: str, now: str) -> str:
    """Return the request that asks whether a tool may be used although it has changed; `before` is
    the tool as it was granted."""
    return write_request(tool, {"before": before, "now": now})


def needs_leave(step: Step) -> bool:
    """Return whether a person must allow or refuse the call of this step before the task can go
    on."""
    return Decision.APPROVE in decisions(step)


def decisions(step: Step) -> tuple[Decision, ...]:
    may_last = (Decision.ALWAYS,) if goes_to(step) else ()
    return (*_DECISIONS_BY_KIND[step.kind], *may_last)


def name_command(way: Decision | None, name: str = "") -> str:
    """Return the command that decides the request with this name so, without a person's words; for
    None, the command that shows it."""
    if way is Decision.ALWAYS:
        return f"{name_command(Decision.APPROVE, name)} --always"
    return " ".join(filter(None, ("babyagi inbox", way, name)))


def decide(step: Step, decision: Decision, text: str) -> Observation:
    """Return the person's decision about the step as the text that the waiting task will read.

    Raises:
        SettingsError: a step of this kind does not take this decision, or the answer is empty.
    """
    if decision not in decisions(step):
        name = str(step.id)
        ways = ", or ".join(
            name_command(way, name) + (' "…"' if way is Decision.ANSWER else "")
            for way in decisions(step)
        )
        raise SettingsError(
            f"request {step.id} waits for something else than `{name_command(decision)}`",
            why=describe(step)[:300],
            fix=ways,
            guide="inbox",
        )
    said = clean(text).strip()
    if decision is Decision.ANSWER and not said:
        raise SettingsError(
            "the answer is empty",
            fix=f'babyagi inbox answer {step.id} "…"',
            guide="inbox",
        )
    if decision is Decision.ALWAYS:
        said = ALWAYS
    if decision is Decision.REJECT:
        said = f"{_REJECTIONS[step.kind]} {said}".strip()
    # the call's own origins count as well, even if a person states its outcome
    is_made = step.kind == ONCE and decision is Decision.ANSWER
    sources = (f"tool:{read_request(step)[0]}",) if is_made else ()
    return Observation(
        passage=Passage(text=said or "approved", origin="person", sources=sources),
        is_error=decision is Decision.REJECT,
    )


def take_words(step: Step, said: object) -> Observation:
    """Return the text that the task will read when a program, in place of a person, answers the
    task's call or question with `said`. An empty text rejects it. For a call that needs approval,
    so does every text that does not begin with a word such as `yes`; `always` allows all that goes
    to the same host in this run."""
    words = "" if said is None else clean(str(said)).strip()
    decision = Decision.ANSWER
    if decision not in decisions(step):
        is_lasting = words.casefold() == ALWAYS and Decision.ALWAYS in decisions(step)
        decision = Decision.ALWAYS if is_lasting else Decision.APPROVE
        words = words if is_lasting or _YES.match(words) else ""
    return decide(step, decision if words else Decision.REJECT, words)


def sign_decision(written: str, step: Step, *, key: str) -> str:
    """Return the decision about the step with a signature. `key` is the key of the home folder in
    which the person decides."""
    fields = json.loads(written)
    return json.dumps({**fields, "signed": _sign(step, fields, key)}, ensure_ascii=False)


def _sign(step: Step, fields: Mapping[str, Any], key: str) -> str:
    named = [step.objective_id, step.owner, step.key, step.kind, step.request]
    text = json.dumps([*named, fields], sort_keys=True)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What the settings of this machine say about calls that an objective wants to make here,
    whatever the task store says.

    Attributes:
        approval: which calls this machine asks a person about.
        key: the key of the home folder, which signs the answers that are given in it; empty if no
            other process can write to the task store.
        find_form: returns the form in which a server's tool, by its name, was allowed in this home
            folder for the objective; "" if it knows none.
    """

    approval: Approval = Approval.NONE
    key: str = ""
    find_form: Callable[[str], str] = field(default=lambda _: "", compare=False)

    def has_settled(self, step: Step, kind: str) -> bool:
        """Return whether the step's answer to a request of this kind counts here: whether it was
        signed with the key of this home, or this machine would not have asked."""
        is_asked_here = kind in (ONCE, CHANGED) or (
            kind == APPROVAL and (self.approval is not Approval.NONE or goes_to(step))
        )
        if not self.key or not is_asked_here:
            return True
        if step.kind != kind:
            return False
        fields = json.loads(step.output or "{}")
        signed = str(fields.pop("signed", ""))
        return hmac.compare_digest(signed.encode(), _sign(step, fields, self.key).encode())


def read_seen(step: Step) -> str:
    """Return the `state` (a digest) of the preview that the person was shown; '' if there was
    none."""
    return str(json.loads(step.output or "{}").get("seen", ""))


async def record(
    store: TaskStore, step: Step, said: Observation, *, home: Path, seen: str = ""
) -> Step:
    """Record what a person of this home folder said to an open step. A changed tool that is allowed
    may be used here in its new form from now on. `seen` is the `state` (a digest) of the preview
    that the person was shown."""
    if step.kind == CHANGED and not said.is_error:
        tool, forms = read_request(step)
        objective = await store.objective(step.objective_id)
        asked, now = identity_key(objective.spec), {tool: str(forms["now"])}
        remember_lent(home, objective.uid, asked=asked, forms=now)
    written = json.loads(said.to_json()) | ({"seen": seen} if seen else {})
    output = sign_decision(json.dumps(written), step, key=answers_key(home))
    return await store.answer_step(step.id, output=output)
