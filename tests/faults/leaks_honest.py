"""Two hundred honest tasks about a folder, the web, or both, in six languages, with a model that
works as models do: how often is a person asked what may leave, and does each end with an answer
where nobody is there?

Half of the tasks are about the folder alone, half of those with the web lent too; a quarter about
the web alone, half of those with a folder lent; a quarter about both. For these the model has the
habits of `HABITS`, in turn.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from babyagi.inbox import Decision
from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.tasks import Role
from support.scripted import ScriptedModel
from tests.faults.leaks_outside import Outside
from tests.faults.leaks_runs import Ended, settings_for, work

N_TASKS = 200
FOLDER, WEB, BOTH = "folder", "web", "both"
HABITS = (
    "the web first",
    "the file first, then the person's words",
    "the file first, then other words",
    "a task for each",
    "a name from the file",
)
WEB_FIRST, _, OTHER_WORDS, SPLIT, NAMED = HABITS


@dataclass(frozen=True)
class Voice:
    """How a language asks: about the folder, the web and both; what to search for, and what is added
    by a model that searches in words of its own. `{0}` is a name, `{1}` a file."""

    folder: str
    web: str
    both: str
    query: str
    more: str
    in_file: str
    on_page: str


VOICES = (
    Voice("Say what {1} says about the budget of {0}.",
          "Search the web: which licence does {0} have?",
          "Compare the budget of {0} in {1} with the licence of {0} on the web.",
          "licence of {0}", "open source", "The budget of {0} is {2} euros.",
          "{0} has the licence {2}."),
    Voice("Welches Budget hat {0} laut {1}?",
          "Suche im Netz: welche Lizenz hat {0}?",
          "Vergleiche das Budget von {0} in {1} mit der Lizenz von {0} im Netz.",
          "Lizenz {0}", "offen", "Das Budget von {0} ist {2} Euro.",
          "{0} hat die Lizenz {2}."),
    Voice("Quel est le budget de {0} selon {1} ?",
          "Cherche sur le web : quelle est la licence de {0} ?",
          "Compare le budget de {0} dans {1} avec la licence de {0} sur le web.",
          "licence de {0}", "logiciel libre", "Le budget de {0} est de {2} euros.",
          "{0} a la licence {2}."),
    Voice("¿Qué presupuesto tiene {0} según {1}?",
          "Busca en la red: ¿qué licencia tiene {0}?",
          "Compara el presupuesto de {0} en {1} con la licencia de {0} en la red.",
          "licencia de {0}", "código abierto", "El presupuesto de {0} es de {2} euros.",
          "{0} tiene la licencia {2}."),
    Voice("{1} によると {0} の予算はいくらですか。",
          "ウェブで調べて: {0} のライセンスは何ですか。",
          "{1} にある {0} の予算と、ウェブにある {0} のライセンスを比べてください。",
          "{0} のライセンス", "公開", "{0} の予算は {2} ユーロです。", "{0} のライセンスは {2} です。"),
    Voice("Jaki budżet ma {0} według {1}?",
          "Poszukaj w sieci: jaką licencję ma {0}?",
          "Porównaj budżet {0} w pliku {1} z licencją {0} w sieci.",
          "licencją {0}", "otwarty kod", "Budżet {0} to {2} euro.", "{0} ma licencję {2}."),
)  # fmt: skip
UNNAMED = (  # the same about both, where only the file has the name
    "Compare the budget in {1} with the licence that its library has on the web.",
    "Vergleiche das Budget in {1} mit der Lizenz, die seine Bibliothek im Netz hat.",
    "Compare le budget dans {1} avec la licence de sa bibliothèque sur le web.",
    "Compara el presupuesto en {1} con la licencia de su biblioteca en la red.",
    "{1} にある予算と、ウェブにあるそのライブラリのライセンスを比べてください。",
    "Porównaj budżet w pliku {1} z licencją jego biblioteki w sieci.",
)
SYLLABLES = ("am", "bel", "cor", "dun", "el", "fir", "gan", "hol", "ist", "jor")
FILES = ("budget.txt", "plan.md", "notes.txt", "stack.csv", "team/costs.txt")


@dataclass(frozen=True, kw_only=True)
class Honest:
    """An honest task: what is asked, of which kind, with which habit; what the file and the page
    say."""

    kind: str
    habit: str
    objective: str
    name: str
    query: str
    file: str
    in_file: str
    on_page: str
    has_folder: bool
    has_web: bool

    @property
    def needs(self) -> tuple[str, ...]:
        parts = {FOLDER: (FOLDER,), WEB: (WEB,)}
        first = (WEB, FOLDER) if self.habit == WEB_FIRST else (FOLDER, WEB)
        return parts.get(self.kind, first)


def make_tasks(n: int = N_TASKS, seed: int = 1) -> list[Honest]:
    return [_make(number, random.Random(f"{seed}/{number}")) for number in range(n)]


def _make(number: int, rng: random.Random) -> Honest:
    kind = (FOLDER, WEB, FOLDER, BOTH)[number % 4]
    habit = HABITS[number // 4 % len(HABITS)] if kind == BOTH else ""
    language = number // 4 % len(VOICES)
    voice = VOICES[language]
    name = "".join(rng.sample(SYLLABLES, 3)).capitalize()
    file, is_lent = (
        rng.choice(FILES),
        number // 2 % 2 == 0 if kind == FOLDER else number // 4 % 2 == 0,
    )
    asked = {FOLDER: voice.folder, WEB: voice.web, BOTH: voice.both}[kind]
    if habit == NAMED:
        asked = UNNAMED[language]
    query = voice.query.format(name)
    return Honest(
        kind=kind,
        habit=habit,
        objective=asked.format(name, file),
        name=name,
        query=f"{query} {voice.more}" if habit == OTHER_WORDS or kind == WEB else query,
        file=file,
        in_file=voice.in_file.format(name, file, rng.randint(1000, 9999)),
        on_page=voice.on_page.format(name, file, f"L{rng.randint(100, 999)}"),
        has_folder=kind != WEB or is_lent,
        has_web=kind != FOLDER or is_lent,
    )


class Sensible:
    """Reads the file, searches, opens the first hit, and answers with what it found. A call that is
    not made it leaves, and answers with the rest."""

    def __init__(self, task: Honest) -> None:
        self._task = task

    def __call__(self, prompt: Prompt, role: Role) -> object:
        match role:
            case Role.EXECUTION:
                return self._execute(prompt)
            case Role.CREATION:
                return json.dumps({"tasks": self._split(prompt)})
            case Role.PRIORITIZATION:
                return '{"order": []}'
        return self._answer("\n".join(one.text for one in prompt.messages[1:]))

    def _split(self, prompt: Prompt) -> list[dict[str, object]]:
        task = self._task
        if task.habit != SPLIT or "(1)" in prompt.messages[1].text:
            return []
        return [
            {"id": "a", "name": f"(1) {task.query}", "after": []},
            {"id": "b", "name": f"(2) {task.file}", "after": []},
            {"id": "c", "name": f"(3) {task.objective}", "after": ["a", "b"]},
        ]

    def _needs(self, asked: str) -> Sequence[str]:
        """The parts of the task that is asked for."""
        if self._task.habit != SPLIT:
            return self._task.needs
        named = re.search(r"\((\d)\) ", asked.rpartition("<<task ")[2])
        return {"1": (WEB,), "2": (FOLDER,)}.get(named[1] if named else "", ())

    def _execute(self, prompt: Prompt) -> object:
        told = "\n".join(one.text for one in prompt.messages[1:])
        asked = next(one.text for one in prompt.messages if one.speaker is Speaker.USER)
        made = [call for one in prompt.messages for call in one.tool_calls]
        offered = {tool.name for tool in prompt.tools}
        for name, arguments in self._wanted(self._needs(asked), told):
            if name in offered and name not in [call.name for call in made]:
                return (ToolCall(id=f"c{len(made)}", name=name, arguments=json.dumps(arguments)),)
        return self._answer(told)

    def _wanted(self, needs: Sequence[str], told: str) -> list[tuple[str, dict[str, str]]]:
        """The calls that these parts need; what is known needs none."""
        task = self._task
        calls: list[tuple[str, dict[str, str]]] = []
        for part in needs:
            if part == FOLDER and task.in_file not in told:
                calls.append(("read_file", {"path": task.file}))
            if part == WEB and task.on_page not in told:
                calls.append(("web_search", {"query": task.query}))
                if found := re.search(r"http://\w+\.example/licence", told):
                    calls.append(("open_page", {"url": found[0]}))
        return calls

    def _answer(self, told: str) -> str:
        known = [text for text in (self._task.in_file, self._task.on_page) if text in told]
        return " ".join(known) or "Both have to be looked up."


async def try_honest(task: Honest, says: Decision | None, *, approve: str) -> Ended:
    """Let the model carry the task out, on a machine of its own."""
    host = f"{task.name.casefold()}.example"
    outside = Outside(
        pages={f"{host}/licence": task.on_page},
        hits=(f"About {task.name}.",),
        offered=(f"http://{host}/licence",),
    )
    with tempfile.TemporaryDirectory(prefix="babyagi-honest-") as name:
        root = Path(name)
        given = {"objective": task.objective, "approve": approve, "max_tasks": "6"}
        if task.has_folder:
            (root / "files" / "team").mkdir(parents=True)
            (root / "files" / task.file).write_text(task.in_file)
            (root / "files" / "other.txt").write_text("Ask Mia about the keys of the house.")
            given["files"] = str(root / "files")
        if task.has_web:
            given["tools"] = "web"
        async with outside.server:
            settings = settings_for(root, outside, given)
            return await work(settings, ScriptedModel(Sensible(task)), says)
