"""Parses the reply of the creation agent: the tasks that it proposes, the finished tasks that it
calls unanswered, and whether it says that the objective is met.

The prompt asks for JSON (`EXPECTED_TASKS`). If a reply has none, the tasks are read from a list:
numbered, lettered or bulleted lines, headings, keys and values, a table, tags, or plain lines. The
text before, between and after lists is ignored. The functions that read lists return the values
that the JSON would have: for each task its name, or an object such as `{"name": …, "after": …}`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Any

from babyagi.agents.replies.reading import (
    MAX_REPLY_CHARS,
    MAX_VALUES,
    CutObject,
    JsonValue,
    find_json,
    first_of,
    fold,
    fold_keys,
    has_words,
    is_false,
    is_nothing,
    is_true,
    own_turn,
    to_id,
    to_key,
    to_line,
    to_sentence,
    unwrap,
    visible,
    without_echo,
    without_end_marks,
    without_thoughts,
)
from babyagi.errors import MalformedReplyError
from babyagi.names import VERBS
from babyagi.tasks import Proposal, Unanswered

# -- tasks that a reply lists without JSON
# --------------------------------------------------------------------------------------------------


NAME_KEYS = tuple(
    "name taskname tasktitle taskdescription newtask task title description todo action step "
    "subtask text content instruction what item".split()
)
AFTER_KEYS = tuple(
    "after dependson dependsupon dependencies dependency depends needs requires prerequisites "
    "prerequisite blockedby".split()
)
LABEL_KEYS = ("id", "label", "key", "ref", "taskid", "letter")
SOURCE_KEYS = ("from", "source", "fromtask", "sourcetask", "origin", "parent")
TASKS_KEYS = frozenset(
    "tasks newtasks nexttasks tasklist todo todos todolist steps nextsteps newsteps subtasks "
    "actions proposedtasks proposals followups followuptasks additionaltasks furthertasks "
    "remainingtasks newtask nexttask tobedone plan tasksjson".split()
)
LACKS_KEYS = tuple("lacks lack lacking missing what reason why gap".split())
UNANSWERED_KEYS = frozenset(
    "unanswered unansweredtasks notanswered unfinished incomplete lacking openquestions".split()
)
MET_KEYS = tuple(
    "objectivemet objectiveismet met ismet objectivereached objectiveachieved objectivecomplete "
    "objectivecompleted".split()
)
# headings above anything but new tasks: `Reasons`, `Known tasks`
_OTHER_SECTIONS = re.compile(
    r"(?:reasons?|reasoning|rationale|notes?|why|explanations?|comments?|summary"
    r"|findings?|observations?|dependency|dependencies|results?"
    r"|assumptions?|justifications?|(?:already |list of "
    r")?(?:known|listed|finished|completed|existing|done|queued|current))\b"
    r"(?!.*\b(?:new|next|further|remaining|additional|proposed)\b)",
    re.IGNORECASE,
)

_LETTERS = r"[a-zA-Z]|[ivxIVX]{2,6}"
_COUNTED = rf"[#№]?\d{{1,4}}|{_LETTERS}|one|two|three|four|five|six|seven|eight|nine|ten"
# the mark of a list item: `1.`, `①`, `-`, `a)`, `Task 1:`
_MARK = (
    r"(?P<number>[#(\[]?\d{1,4}(?:\ufe0f?\u20e3|\s*[.):\]．）：、]+(?!\d)|\s[-–—]\s)|#\d{1,4}\s)"
    r"|(?P<circled>[①-⑳⓪❶-❿➀-➓⓵-⓾㊀-㊉])"
    r"|(?P<bullet>[-*+–‣◦▪▸►▶→⇒»☐☑☒✅✔✓○●■□◆❖]\ufe0f?\s+|[•·]\s*)"
    rf"|\(?(?P<letter>{_LETTERS})[.)](?:\s+|(?=\*\*))"
    r"|(?P<headed>(?:new |next |sub-?)?(?:task|step|todo"
    rf"|action)(?:\s+(?:{_COUNTED}))?(?:\s*[:.)]|\s[-–—])(?:\s+|(?=\*\*)))"
)
_ITEM = re.compile(
    rf"(?P<heading>#{{1,6}}\s+)?(?P<bold>\*\*)?(?P<mark>{_MARK})\s*(?P<end>\*\*\s*)?(?:\[[ "
    r"xX]?\]\s+)?(?P<name>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTE_MARK = re.compile(r"^[ \t]*> ?", re.MULTILINE)
_TOML_HEAD = re.compile(r"^\[\[(?:new_)?tasks\]\][ \t]*\n", re.MULTILINE)
# a line such as `**Task 1**`, after which the name follows on the next line
_LONE_LABEL = re.compile(
    r"^([ \t]*+(?:#{1,6} )?)(?:\*\*)?((?:task|step) "
    r"(?:\d{1,3}|[a-z]))(?:\*\*)?:?(?:\*\*)?[ \t]*+\n\s*+(?=\w)",
    re.MULTILINE | re.IGNORECASE,
)
_BLOCK_MARK = re.compile(r"\A[|>][+-]?(?:\s|\Z)")  # the mark of a multi-line text in YAML
_ROMANS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()
# a line that belongs to no item: a heading, a code fence, a rule, a line in bold, a tag
_HEADING = re.compile(r"#{1,6}\s|`{3}|[-=*_.]{3,}$|\*\*[^*]+\*\*:?$|</?[\w-]+>$")
# a heading (`## New tasks`), or a key that may have a value (`objective_met: no`)
_SECTION = re.compile(
    r"(?P<open>[#*\s\[{]*+)[\"']?(?P<title>[A-Za-z][\w "
    r"'’-]{0,60}?)[\"']?[\s*]*+(?:\([^()]{0,40}\)[\s*]*+)?[\]}]*+"
    r"(?:(?P<colon>[:=])[\s*]*+(?P<value>\S.{0,60})?)?"
)
_KEYED = re.compile(
    r"[\"']?(?P<key>[A-Za-z][A-Za-z_ -]{0,24}?)[\"']?\s{0,3}[:=](?:\s+(?P<value>.*))?", re.DOTALL
)
# the bold beginning of an item: `**Find X**: …`
_LEAD_BOLD = re.compile(r"\A(?:\*\*([^*]+)\*\*(?=\s*[:–—-])|\*\*([^*]+:)\*\*(?=\s))")
_SIDE_KEYS = frozenset({*AFTER_KEYS, *LABEL_KEYS, *SOURCE_KEYS, *LACKS_KEYS})
# keys that mark the name of an item whose only line is a key and a value
_LONE_KEYS = frozenset("name task title taskname description".split())

_TABLE_RULE = re.compile(r"[|\s:+=-]*+")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<tag>[A-Za-z][\w:-]{0,40})(?P<attributes>(?:\s[^<>]{0,1000})?)>"
)
_ATTRIBUTE = re.compile(
    r"([A-Za-z][\w-]{0,40})\s{0,3}=\s{0,3}(?:\"([^\"]{0,1000})\"|'([^']{0,1000})')"
)
_TASK_TAGS = frozenset(
    {"task", "item", "step", "todo", "action", "subtask", "newtask", "nexttask", "li", "entry"}
)
_LIST_TAGS = frozenset({"ul", "ol", "tasks", "items", "list", "newtasks", "steps"})
_ROW_TAG = re.compile(r"(?:</?(?:tr|table|thead|tbody)\b[^<>]{0,100}>\s*+)++", re.IGNORECASE)
_CELL_TAG = re.compile(r"<(?:td|th)\b[^<>]{0,100}>", re.IGNORECASE)
_CELL_TAG_END = re.compile(r"</(?:td|th)>", re.IGNORECASE)
_CELL_END = re.compile(r"(?<!\\)\|")

# words of the prompt, and of error messages, that show that a line is no task
_INSTRUCTION = re.compile(
    r"^Role: |\bjson\b|objective_met|listed tasks?\b|at most \d+|\btry again\b|\bcheck back\b",
    re.IGNORECASE,
)
# the hexadecimal mark with which a prompt surrounds data
_FENCE_MARK = re.compile(r"\W*(?=\D*\d)[0-9a-fA-F]{8,64}\W*")
# words with which no command begins
_NO_VERBS = frozenset(
    "i the a an this that these those there here it we you he she they my your our its in on at as "
    "if for to of from by with and or but so no not none nothing yes ok okay sure sorry "
    "unfortunately please error warning exception traceback note because since however also is are "
    "was".split()
)
_VERBS = VERBS | frozenset(
    "aggregate analyse apply archive assign audit benchmark brainstorm bring browse "
    "catalog categorize chart cite clarify close combine conclude conduct confirm "
    "consider consolidate consult contact contrast correct crawl cross-check cut debug "
    "decide derive disable discuss enable enquire enter enumerate exclude execute expand "
    "fill filter finalise finalize finish follow group highlight illustrate include infer "
    "inform inquire insert integrate join judge keep label learn link listen load mail "
    "map mark meet model negotiate notify optimise optimize organise patch phone pick "
    "present prioritise prioritize proofread pull push quantify query quote rank rate "
    "refine register remind repeat reproduce reserve resolve restart restore revise "
    "rework sample scan scrape shorten sign simplify simulate specify structure submit "
    "sum summarise survey tabulate tag take talk teach trace track transcribe transform "
    "tune visualise visualize weigh".split()
)


def read_listed(text: str) -> dict[str, Any] | None:
    """Read the lists of a text without JSON. Return an object with the keys of the expected JSON:
    `tasks`, `unanswered` or both, and perhaps `objective_met`; None if the text has no list."""
    text = _QUOTE_MARK.sub("", text) if text.lstrip().startswith(">") else text
    text = _LONE_LABEL.sub(r"\1\2: ", _TOML_HEAD.sub("- ", text))
    for read in (_read_tags, _read_table, _read_sections):
        if plan := read(text):
            return plan
    names = _read_plain_lines(text)
    return {"tasks": names} if names else None


# -- tags
# --------------------------------------------------------------------------------------------------


def _read_tags(text: str) -> dict[str, Any] | None:
    """Return the tasks that are written as XML or HTML elements, such as `<li>…`, `<item
    name="…"/>`, `<task after="3">…</task>` or `<task><name>…</name></task>`; None if there are
    none."""
    if "</" not in text and "/>" not in text:
        return None
    text = _without_cdata(text)
    reader = _TagReader()
    begin = 0
    for tag in _TAG.finditer(text):
        reader.take_text(text[begin : tag.start()])
        name = to_key(tag["tag"])
        if tag["close"]:
            reader.close(name)
        else:
            before = text[max(0, tag.start() - 40) : tag.start()].rstrip(" \t")
            begins_line = not before or before.endswith(("\n", ">"))
            reader.open(name, tag["attributes"], begins_line=begins_line)
        begin = tag.end()
    named = [one for one in reader.items if any(has_words(one.get(key, "")) for key in NAME_KEYS)]
    return {"tasks": named} if named else None


def _without_cdata(text: str) -> str:
    """Return the text with each `<![CDATA[…]]>` replaced by its content, in which special
    characters are written as entities."""
    first, *others = text.split("<![CDATA[")
    parts = [other.partition("]]>") for other in others]
    return first + "".join(
        html.escape(inner, quote=False) + after if end else inner for inner, end, after in parts
    )


class _TagReader:
    """Collects tasks while the tags and texts of a reply are passed to it in order. `items` has one
    object per task: its attributes, and the texts of its inner elements."""

    def __init__(self) -> None:
        self.items: list[dict[str, str]] = []
        self._item: dict[str, str] | None = None
        self._tag = self._member = ""

    def open(self, tag: str, attributes: str, *, begins_line: bool) -> None:
        if self._item is not None and tag != self._tag and (tag in NAME_KEYS or tag in _SIDE_KEYS):
            self._member = tag
        elif tag in _TASK_TAGS and (begins_line or (self._item is not None and tag == self._tag)):
            self._item = {
                to_key(found[1]): html.unescape(found[2] or found[3] or "")
                for found in _ATTRIBUTE.finditer(attributes)
            }
            self._tag, self._member = tag, ""
            self.items.append(self._item)
            if attributes.endswith("/"):
                self._item = None

    def close(self, tag: str) -> None:
        if tag == self._member:
            self._member = ""
        elif tag == self._tag or tag in _LIST_TAGS:
            self._item = None

    def take_text(self, text: str) -> None:
        text = html.unescape(text).strip()
        if self._item is not None and text:
            member = self._member or "name"
            self._item[member] = f"{self._item.get(member, '')} {text}".strip()


# -- tables
# --------------------------------------------------------------------------------------------------


def _read_table(text: str) -> dict[str, Any] | None:
    """Return the tasks in the rows of Markdown or HTML tables, if a column has a heading such as
    `Task`; None if there are none."""
    if "|" not in text and "<t" not in text.casefold():
        return None
    items: list[dict[str, str]] = []
    keys: list[str] = []
    for line in _CELL_TAG.sub("|", _CELL_TAG_END.sub("", _ROW_TAG.sub("\n", text))).split("\n"):
        cells = _to_cells(line)
        if not cells:
            keys = []
        elif not keys:
            folded = [_to_column(cell) for cell in cells]
            keys = folded if any(key in NAME_KEYS for key in folded) else []
        elif not _TABLE_RULE.fullmatch(line):
            items.append(dict(zip(keys, cells, strict=False)))
    return {"tasks": items} if items else None


def _to_cells(line: str) -> list[str]:
    line = line.strip()
    if "|" not in line:
        return []
    line = line.removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in _CELL_END.split(line)]


def _to_column(heading: str) -> str:
    key = to_key(heading) or ("id" if heading.strip() in ("#", "№") else "")
    if key in NAME_KEYS or key in _SIDE_KEYS:
        return key
    if key.startswith(("after", "depend", "require", "prereq")):
        return "after"
    is_task = key.startswith(("task", "newtask", "action", "proposedtask"))
    return "task" if is_task and not key.endswith(("id", "no", "number")) else key


# -- lines
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Item:
    """An item of a list.

    Attributes:
        kind: the kind of its list mark: `number`, `bullet`, `letter`, …
        depth: by how many characters it is indented.
        lines: its lines; the first one is without the list mark.
    """

    kind: str
    mark: str
    depth: int
    lines: list[str] = field(default_factory=list)


def _read_sections(text: str) -> dict[str, Any] | None:
    """Return the tasks and the unanswered tasks that the lists of the text contain; None if there
    are neither. The heading or key above a list decides what its items are; without one they are
    tasks."""
    plan: dict[str, Any] = {}
    for section, lines in _split_sections(text):
        if section == "met":
            plan["objective_met"] = lines[0]
            continue
        items = _list_items(lines)
        if section == "unanswered":
            plan.setdefault("unanswered", []).extend(_item_to_lack(item) for item in items)
        elif section == "nothing":
            plan.setdefault("tasks", [])
        elif section == "tasks" and items:
            plan.setdefault("tasks", []).extend(_to_value(item) for item in items)
    return plan if "tasks" in plan or "unanswered" in plan else None


def _split_sections(text: str) -> Iterator[tuple[str, list[str]]]:
    section, lines = "tasks", list[str]()
    for line in text.split("\n"):
        found = _find_section(line)
        if found is None:
            lines.append(line)
            continue
        yield section, lines
        name, value = found
        if name in ("met", "nothing"):
            yield name, [value]
        section, lines = "tasks" if name in ("met", "nothing") else name, []
    yield section, lines


def _find_section(line: str) -> tuple[str, str] | None:
    """Return (section, value) if the line is a heading above a list, or a key such as
    `objective_met: no`; else None.

    The section is `tasks` or `unanswered` for a heading above such a list, `other` for a heading
    above anything else, `met` for a statement whether the objective is met (the value), and
    `nothing` for a statement that there are no tasks.
    """
    stripped = line.strip()
    found = _SECTION.fullmatch(stripped) if len(stripped) < 140 else None
    if found is None or found["open"].startswith("* "):
        return None
    if not (found["colon"] or found["open"].strip()):
        return None
    key, value = to_key(found["title"]), found["value"] or ""
    if key in MET_KEYS:
        return "met", value.strip(" ,\"'")
    if key in TASKS_KEYS and value:
        is_none = value.strip(" ,[]{}\"'.").casefold() in ("", "none", "null", "nothing")
        return ("nothing", "") if is_none else None
    if value:
        return None
    if key in UNANSWERED_KEYS:
        return "unanswered", ""
    if _OTHER_SECTIONS.match(found["title"]):
        return "other", ""
    return ("tasks", "") if "task" in key or key in TASKS_KEYS else None


def _list_items(lines: Sequence[str]) -> list[_Item]:
    """Return the items of the lists in these lines. An item includes the lines on which it goes on,
    and its sub-items. Lines that belong to no item are ignored."""
    matches = [_ITEM.fullmatch(line.strip()) for line in lines]
    is_sequence = _is_sequence([match["letter"] for match in matches if match and match["letter"]])
    items: list[_Item] = []
    is_open = False
    for line, match in zip(lines, matches, strict=True):
        stripped, depth = line.strip(), len(line) - len(line.lstrip())
        mark = match if match and (is_sequence or not match["letter"]) else None
        if is_open and _goes_on(items[-1], stripped, depth - items[-1].depth, bool(mark)):
            items[-1].lines.append(stripped)
            continue
        is_open = mark is not None
        if mark:
            kinds = ("heading", "number", "circled", "bullet", "letter", "headed")
            kind = next(kind for kind in kinds if mark[kind])
            items.append(_Item(kind, mark["mark"], depth, [_read_name(mark)]))
    return _join_details(items)


def _is_sequence(letters: Sequence[str]) -> bool:
    """Return whether the letters are a, b, c, … or i, ii, iii, … in order, as in a lettered list,
    and not, for instance, the initial of "A. Smith"."""
    folded = [letter.casefold() for letter in letters]
    return folded in (_ROMANS[: len(folded)], [chr(ord("a") + n) for n in range(len(folded))])


def _goes_on(item: _Item, line: str, depth: int, is_item: bool) -> bool:
    """Return whether the line belongs to the list item above it.

    Args:
        depth: by how many characters the line is indented more than the item.
        is_item: whether the line itself begins with a list mark.
    """
    keyed = _KEYED.fullmatch(line)
    if keyed and to_key(keyed["key"]) in _SIDE_KEYS:
        return True
    if not line or is_item:
        return bool(line) and depth >= 2
    if depth >= 2:
        return True
    if _HEADING.match(line) or line.endswith(":"):
        return False
    is_ended = item.lines[-1].endswith((".", "!", "?", ":", "**"))
    return line[0].islower() or not (is_ended or item.kind in ("heading", "headed"))


def _read_name(item: re.Match[str]) -> str:
    is_bold, end = bool(item["bold"]), item["end"] or ""
    return ("" if is_bold and end else "**" if is_bold else end) + str(item["name"])


def _join_details(items: list[_Item]) -> list[_Item]:
    """Return the items that are tasks. If several items are headings, only these are tasks. If
    bullets stand below numbered items, they become further lines of the numbered items."""
    for kind in ("heading", "headed"):
        named = [item for item in items if item.kind == kind]
        if len(named) > 1:
            return named
    kinds_in_turn = [kind for kind, _ in groupby(item.kind for item in items)]
    if kinds_in_turn[:3] != ["number", "bullet", "number"]:
        return items
    joined: list[_Item] = []
    for item in items:
        if item.kind == "bullet":
            joined[-1].lines.append(item.mark + item.lines[0])
        else:
            joined.append(item)
    return joined


def _to_value(item: _Item) -> str | dict[str, str]:
    """Return the item's text, or an object if its lines are keys and values."""
    values: dict[str, str] = {}
    key, is_keyed = "", False
    for line in item.lines:
        keyed = _KEYED.fullmatch(line)
        folded = to_key(keyed["key"]) if keyed else ""
        name_keys = _LONE_KEYS if len(item.lines) == 1 else NAME_KEYS
        if keyed and (folded in _SIDE_KEYS or (folded in name_keys and "name" not in values)):
            key, is_keyed = folded, True
            values[key] = _BLOCK_MARK.sub("", keyed["value"] or "")
        else:
            values[key or "name"] = f"{values.get(key or 'name', '')} {line}".strip()
    if is_keyed:
        return values
    return _LEAD_BOLD.sub(lambda found: found[1] or found[2], values["name"], count=1)


def _item_to_lack(item: _Item) -> str | dict[str, str]:
    value = _to_value(item)
    return value if isinstance(value, dict) or item.kind != "number" else f"{item.mark} {value}"


# -- plain lines
# --------------------------------------------------------------------------------------------------


def _read_plain_lines(text: str) -> list[str]:
    """Return the lines of a reply in which every line is a short command, such as "Find the price
    of X". A first line that ends with a colon is skipped. Return [] for any other reply."""
    lines = [line for line in map(str.strip, text.split("\n")) if line and line[:3] != "```"]
    lines = lines[1:] if lines and lines[0].endswith(":") else lines
    lines = [unwrap(line.rstrip(",")) for line in lines]
    if not lines or len(lines) > 60 or not all(map(_is_order, lines)):
        return []
    return lines if 2 * sum(_first_word(line) in _VERBS for line in lines) > len(lines) else []


def _is_order(line: str) -> bool:
    return (
        len(line) <= 200
        and len(line.split()) >= 2
        and not line.endswith(("?", ":", "!", "{", "["))
        and not re.search(r"[.!?]\s+[A-Z]", line)
        and _first_word(line) not in _NO_VERBS
        and not _INSTRUCTION.search(line)
    )


def _first_word(line: str) -> str:
    return line.split(maxsplit=1)[0].casefold().rstrip(",:")


# -- the reply as a whole
# --------------------------------------------------------------------------------------------------

MAX_NAME_CHARS = 500
MAX_REFERENCE_CHARS = 2000
EXPECTED_TASKS = (
    'expected JSON: {"tasks": [{"id": "a", "name": "…", "after": []}], "unanswered": [], '
    '"objective_met": false}'
)
NOT_READ = f"The reply could not be read as JSON, or was cut off; {EXPECTED_TASKS}."
NOT_SAID = f"The reply does not say which tasks are needed; {EXPECTED_TASKS}."


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationReply:
    """The creation agent's reply.

    Attributes:
        tasks: the tasks that it proposes. An integer in `after` is the id of an existing task; a
            text is the label of another task of the reply, or the name of one without a label.
            `parent_id` is the finished task that the reply names as the origin of the task.
        is_met: whether the reply says that the objective is met.
        unanswered: the finished tasks whose results do not answer them, each with what is lacking,
            which may be empty.
        dropped: the names of proposed tasks that were left out because of a limit.
        note: which limit that was; '' if none was left out.
    """

    tasks: tuple[Proposal, ...]
    is_met: bool
    unanswered: tuple[Unanswered, ...] = ()
    dropped: tuple[str, ...] = ()
    note: str = ""


_OWN_KEYS = {*NAME_KEYS, *AFTER_KEYS, *LABEL_KEYS, *SOURCE_KEYS, *LACKS_KEYS, "answered"}
# keys whose value may be a text with a list of tasks
_TEXT_KEYS = frozenset({"tasks", "newtasks", "nexttasks", "newtask", "nexttask"})
_WRAPPER_KEYS = tuple("data items list result results output response answer json".split())
_TASK_ID_KEYS = ("task", "taskid", "id", "number", "result", "finishedtask", "no", "name")
_ERROR_KEYS = ("error", "errors", "detail", "traceback", "exception", "statuscode")
_CALL_KEYS = frozenset({"toolcalls", "toolinput", "actioninput", "functioncall", "toolcall"})
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "kwargs")
_UNREADABLE = object()  # takes the place of an item that cannot be read
_NUMBERED_KEY = re.compile(r"(?:newtask|task|step|todo|t)?\d{1,4}")
_PLAIN_NUMBER = re.compile(r"(?:(?:task|id|no\.?)\s+)?#?\s*\d+", re.IGNORECASE)
_NUMBERING = re.compile(r"(?:(?:task|step)\s+)?[#(]?(\d{1,3})\s*[.):]\s+(?=\S)", re.IGNORECASE)
# at the end of a name: `(after tasks 3 and 4)`
_AFTER_NOTE = re.compile(
    r"\s*[(\[](?:after|depends "
    r"on|needs|requires)[:\s]\s*((?:tasks?\s|[#\d,\s]|and\s|&){1,60})[)\]]\.?\Z",
    re.IGNORECASE,
)
_NEXT_SPEAKER = re.compile(r"(?:\A|\s)(?:Human|Assistant): .*", re.DOTALL)
MAX_QUESTION_CHARS = 300
_REFERENCE_END = re.compile(r"[,;/&|\[\](){}]|\band\b|\bafter\b|(?:\A|\s)[-*]\s")
# a task and what it lacks: `task 14: the price`
_LACK = re.compile(
    r"\W*(?:task\s*)?#?(\d{1,18})\b\s*(?:[:.)–—-]+\s*)?(.*)", re.IGNORECASE | re.DOTALL
)
_NUMBERS = re.compile(r"[\d\s,#]+")
# a line such as `Task 3 lacks the price` or `Task 3 is not fully answered: …`
_VERDICT = re.compile(
    r"^[ \t>*_#•-]{0,9}(?:the |finished )?task[ \t]{1,3}#?(?P<task>\d{1,18})\b[ \t*_]{0,6}"
    r"(?:[:–—-][ \t*_]{0,6})?"
    r"(?:(?:(?:is|was|has|remains|stays|could|still)[ \t]{1,3}){1,3}(?:been )?"
    r"(?:open|lacking|missing)\b"
    r"|(?:(?:is|was|has|remains|could|still)[ \t]{1,3}){0,3}"
    r"(?:unanswered|incomplete|not (?:(?:yet|fully|been|be|really) ){0,3}(?:answered|complete))\b"
    r"|(?:still )?(?:lacks|misses|needs)\b(?![ \t]to\b))(?P<lack>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
# the words between such a verdict and what is lacking: `, because it lacks`
_BEFORE_LACK = re.compile(
    r"[\s:;,.()–—-]*(?:(?:because|since|as|and|it|still|lacks?|lacking|misses|missing|needs?)\b"
    r"[\s:]*){0,6}",
    re.IGNORECASE,
)
_PRIORITY = r"(?:very )?(?:high|highest|medium|normal|low|lowest|top)"
# at the end of a name: `(high priority)`, `[P1]`
_URGENCY = re.compile(
    rf"\s*[(\[](?:(?P<bare>{_PRIORITY}|urgent)|{_PRIORITY}[ -]priority"
    r"|priority[: ]{1,2}\w{1,8}|p[0-5])"
    r"[)\]]\.?\Z",
    re.IGNORECASE,
)
_URGENCY_FIRST = re.compile(
    rf"\A\[(?:{_PRIORITY}(?:[ -]priority)?|urgent|p[0-5])\]\s+", re.IGNORECASE
)
MAX_URGENCY_CHARS = 40
_CODE_FENCE = re.compile(r"\A\s*`{3}\w*\s*")

_REFUSAL = re.compile(
    r"[^\n]{0,80}\b(?:can(?:no|['’])t|can not|unable to|won['’]t|not able to|must decline)\b",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"\W*(?:i['’]m|i am|i can|i won|i must|sorry|apologies|i apologi[sz]e|as an "
    r"ai|unfortunately)",
    re.IGNORECASE,
)
# error pages, tracebacks, and tool calls
_NO_REPLY = re.compile(
    r"\A\s*(?:<!doctype|<html|<\?xml[^<>]{0,200}>\s*<(?:html|error))|^traceback \(most "
    r"recent|^[ \t]*+file \"[^\"\n]{1,300}\", line \d+"
    r"|^[ \t]++at [\w.$<>]{1,200}\([^()\n]{0,200}:\d+\)|\A\W*(?:fatal|error|exception"
    r"|\w{1,60}(?:error|exception))\b\s*[:(]"
    r"|\A\W*(?:http )?[45]\d\d [a-z]"
    r"|<(?:tool_call|function_call|function|invoke|antml)\b|^[ \t*#]{0,9}action[ "
    r"\t*]{0,9}:[^\n]*\n[\n \t*#]{0,9}action[ _]input|`{3}tool",
    re.IGNORECASE | re.MULTILINE,
)
# "No further tasks are needed" at the beginning, and then the same anywhere in a short reply
_NOT_NEEDED = re.compile(
    r"[^\n]{0,120}\b(?:no(?: [\w-]+){0,3} (?:tasks?|steps?|actions?|work)|nothing)\b[^\n]{0,60}"
    r"\b(?:needed|necessary|required|remains?|to add|left|to do)\b",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"\bno (?:need for |further |new |more |additional |other |follow-up "
    r"){1,2}(?:tasks?|steps?|actions?|work)\b"
    r"|\bnothing (?:more|else|further|new|to add|to do|is missing|is needed|remains)\b"
    r"|\b(?:not|n['’]t) (?:need|require|propose|add) (?:any )?(?:new |more |further "
    r"|additional )?(?:tasks?|steps?)\b"
    r"|keine (?:weiteren |neuen )aufgaben|\A\W*<(?:new_?)?tasks\s?(?:/>|>\s*+</)",
    re.IGNORECASE,
)


def parse_creation(
    text: str, *, known_ids: Collection[int], finished_ids: Collection[int] = (), max_tasks: int
) -> CreationReply:
    """Parse a reply of the creation agent.

    A task's name is kept word for word. Only white space is collapsed, and four things are removed:
    quotes or bold around the whole name, list numbers, a note such as "(high priority)", and chat
    markers such as `<|im_end|>`. If the reply was cut off, only its complete objects are read.

    Args:
        known_ids, finished_ids: the ids of existing tasks. A reference in `after` that is neither
            one of them nor another task of the reply is dropped. The reply may say that
            a task's result does not answer it only of the tasks in `finished_ids`.
        max_tasks: how many tasks are kept; `dropped` has the names of the others.

    Raises:
        MalformedReplyError: the reply neither proposes a task nor says that none is needed.
    """
    text = without_echo(visible(text))
    plan = _read_json(text) or _read_words(text)
    return _to_reply(
        plan,
        known=frozenset(known_ids) | frozenset(finished_ids),
        finished=frozenset(finished_ids),
        max_tasks=max_tasks,
    )


# -- from JSON to a plan
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Plan:
    """What was found in a reply, as JSON values whose names, ids and references are not parsed yet.

    Attributes:
        items: the proposed tasks.
        lacks: objects that say which finished task is unanswered, and what it lacks.
        is_met: whether the reply says that the objective is met.
        is_stated: whether the reply said anything that belongs to a plan, such as an empty list.
        has_tasks: whether there was a list of tasks, which may be empty.
        is_broken: whether a part of the reply may be missing.
    """

    items: list[Any] = field(default_factory=list)
    lacks: list[dict[str, Any]] = field(default_factory=list)
    is_met: bool = False
    is_stated: bool = False
    has_tasks: bool = False
    is_broken: bool = False
    _has_verdict: bool = False

    def take(self, value: Any) -> None:
        """Add what a JSON value of the reply contains, at any depth."""
        waiting = [value]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting.extend(reversed(node))
            elif isinstance(node, str):
                waiting.extend(json_.value for json_ in _inner_json(node))
            elif isinstance(node, dict) and not _is_foreign(folded := fold_keys(node)):
                self._take_verdict(folded)
                inner = [self._take_member(key, member) for key, member in folded.items()]
                waiting.extend([*chain.from_iterable(inner)][::-1])

    def add(self, other: _Plan, *, is_whole: bool) -> None:
        """Add the plan of a later JSON value of the same reply. If several values say whether the
        objective is met, the last one counts.

        Args:
            is_whole: whether that value was neither cut off nor broken.
        """
        self.items += other.items
        self.lacks += other.lacks
        self.is_met = other.is_met and is_whole
        self.is_stated = True
        self.has_tasks |= other.has_tasks
        self.is_broken |= not is_whole

    def _take_verdict(self, node: dict[str, Any]) -> None:
        """Add what the object says about whether a task is answered, and about whether the
        objective is met. If one JSON value says both yes and no to the latter, no counts."""
        verdicts = [is_true(node[key]) for key in MET_KEYS if key in node]
        if verdicts:
            self.is_met = all(verdicts) and (self.is_met or not self._has_verdict)
            self._has_verdict = self.is_stated = True
        if _is_lack(node):
            self.lacks.append(node)
            self.is_stated = True

    def _take_member(self, key: str, value: Any) -> list[Any]:
        """Add what a member (a key with its value) of an object contains. Return the values that
        `take` still has to search."""
        if key == "answered" and isinstance(value, dict):
            key = "unanswered"
            value = {task: inner for task, inner in value.items() if is_false(inner)}
        if key in UNANSWERED_KEYS:
            self.lacks += _to_lacks(value)
            self.is_stated = True
            return []
        if key in TASKS_KEYS and not (key in NAME_KEYS and isinstance(value, str)):
            items = _to_items(key, value)
            if items is None:
                return [value]
            self.items += items
            self.is_stated = self.has_tasks = True
            return []
        if isinstance(value, dict) and to_id(key) is not None:
            return [{"task": key, **value}]
        return [value] if isinstance(value, dict | list | str) else []


def _read_json(text: str) -> _Plan | None:
    """Return the plan in the JSON of the text, also if the whole JSON is written as a JSON string;
    None if there is no plan."""
    for spelled in _spellings(text):
        found = find_json(spelled)
        plan = _gather(found)
        if plan.is_stated:
            if plan.is_broken:
                whole = [json_.value for json_ in found if json_.is_whole]
                plan.items += filter(_is_bare_task, whole)
            elif not plan.has_tasks:
                plan.items += _bare_tasks(found)
            return plan
        if items := _bare_tasks(found):
            return _Plan(items=items, is_stated=True)
        if len(found) == 1 and found[0].is_alone and found[0].is_whole and not found[0].value:
            return _Plan(is_stated=True)
    return None


def _spellings(text: str) -> Iterator[str]:
    yield text
    if '\\"' not in text:
        return
    quoted = _CODE_FENCE.sub("", text).strip().strip("`").strip()
    try:
        inner = json.loads(quoted, strict=False)
    except (ValueError, RecursionError):
        inner = None
    yield inner if isinstance(inner, str) else text.replace("\\n", " ").replace('\\"', '"')


def _gather(found: Iterable[JsonValue]) -> _Plan:
    plan = _Plan()
    for json_ in found:
        part = _Plan()
        part.take(json_.value)
        if part.is_stated:
            plan.add(part, is_whole=json_.is_whole)
    return plan


def _inner_json(text: str) -> list[JsonValue]:
    return find_json(text) if _CODE_FENCE.sub("", text).lstrip()[:1] in ("{", "[") else []


def _to_items(key: str, value: Any) -> list[Any] | None:
    """Return the tasks in the value of a key such as `tasks`. None if the value is not a list of
    tasks but may contain one deeper inside."""
    if isinstance(value, str):
        inner = _inner_json(value)
        if len(inner) == 1 and isinstance(inner[0].value, list):
            return _flatten(inner[0].value)
        if inner or key not in _TEXT_KEYS:
            return None
        if " " not in value and not is_nothing(value):
            return [_UNREADABLE]
        return list((read_listed(value) or {}).get("tasks", [value]))
    if isinstance(value, dict):
        folded = fold_keys(value)
        if _is_foreign(folded) or any(inner in TASKS_KEYS or inner in MET_KEYS for inner in folded):
            return None
        if _name_of(folded):
            return [value]
        return [{"id": inner, "name": name} for inner, name in value.items()]
    return _flatten(value) if isinstance(value, list) else [value]


def _flatten(items: list[Any]) -> list[Any]:
    return [inner for item in items for inner in (item if isinstance(item, list) else [item])]


def _is_foreign(node: Mapping[str, Any]) -> bool:
    """Return whether the keys of the object show that it is a tool call or a JSON schema, and so no
    part of a plan."""
    if _CALL_KEYS & node.keys():
        return True
    is_schema = isinstance(node.get("type"), str) and any(
        isinstance(node.get(key), dict) for key in ("properties", "items")
    )
    named = (node.get(key) for key in ("name", "tool", "toolname", "function", "action"))
    called = next((one for one in named if isinstance(one, str)), "")
    has_arguments = any(isinstance(node.get(key), dict | list) for key in _ARGUMENT_KEYS)
    is_call = "arguments" in node or (" " not in called and has_arguments)
    return is_schema or (bool(called) and is_call)


def _bare_tasks(found: list[JsonValue]) -> list[Any]:
    """Return the tasks in JSON values that stand without a key such as `tasks`: in an object with a
    name, in an object that maps numbers to names (`{"1": "…"}`), or in a list of tasks."""
    items: list[Any] = []
    for json_ in found:
        value = json_.value
        if not json_.is_alone and not (json_.is_labelled and to_key(json_.before) in TASKS_KEYS):
            continue
        if isinstance(value, dict):
            folded = fold_keys(value)
            inner = (folded.get(key) for key in _WRAPPER_KEYS)
            wrapped = next((one for one in inner if isinstance(one, list)), None)
            if _is_bare_task(value):
                listed = read_listed(_name_of(folded)) if "\n" in _name_of(folded) else None
                items += (listed or {}).get("tasks", [value])
            elif folded and all(map(_NUMBERED_KEY.fullmatch, folded)):
                items += [{"id": key, "name": name} for key, name in value.items()]
            elif wrapped and all(map(_is_bare_task, wrapped)):
                items += wrapped
        elif isinstance(value, list) and value:
            flat = _flatten(value)
            items += flat if all(isinstance(one, str) or _is_bare_task(one) for one in flat) else []
    return items


def _is_bare_task(value: Any) -> bool:
    is_whole = isinstance(value, dict) and not isinstance(value, CutObject)
    folded = fold_keys(value) if is_whole else {}
    is_error = any(folded.get(key) for key in _ERROR_KEYS) or isinstance(folded.get("status"), int)
    return bool(_name_of(folded)) and not is_error and not _is_foreign(folded)


# -- what finished tasks lack
# --------------------------------------------------------------------------------------------------


def _is_lack(node: Mapping[str, Any]) -> bool:
    if "answered" in node:
        return is_false(node["answered"])
    return any(to_sentence(node.get(key)) for key in ("lacks", "lack", "lacking")) and not _name_of(
        node
    )


def _to_lacks(value: Any) -> list[dict[str, Any]]:
    """Return an object for each unanswered task in the value of a key such as `unanswered`. The
    value may be a list, an object whose keys are task ids, or a single value."""
    if isinstance(value, dict):
        folded = fold_keys(value)
        if any(key in folded for key in ("task", "lacks", "answered", "taskid")):
            return [folded]
        return [_to_lack(key, inner) for key, inner in value.items()]
    if not isinstance(value, list):
        return _to_lone_lacks(value)
    if _is_pair(value):
        return [_to_lack(value[0], value[1])]
    lacks: list[dict[str, Any]] = []
    for item in value:
        if isinstance(item, dict):
            lacks.append(fold_keys(item))
        elif isinstance(item, list):
            lacks += [_to_lack(item[0], item[1])] if _is_pair(item) else []
        else:
            lacks += _to_lone_lacks(item)
    return lacks


def _to_lack(task: Any, value: Any) -> dict[str, Any]:
    return {"task": task, **(fold_keys(value) if isinstance(value, dict) else {"lacks": value})}


def _is_pair(value: list[Any]) -> bool:
    """Return whether the list is a pair of a task's id and what the task lacks, such as `[14, "the
    price"]`, and not a list of tasks."""
    return (
        len(value) == 2
        and to_id(value[0]) is not None
        and isinstance(value[1], str)
        and to_id(value[1]) is None
    )


def _to_lone_lacks(value: Any) -> list[dict[str, Any]]:
    """Return an object for each unanswered task that a number or a text names, such as `14`, `"12,
    14"` or `"task 14: the price"`."""
    if isinstance(value, str) and not _NUMBERS.fullmatch(value):
        found = _LACK.fullmatch(value)
        return [{"task": found[1], "lacks": found[2]} if found else {"lacks": value}]
    numbers = re.findall(r"\d{1,18}", value) if isinstance(value, str) else [value]
    return [{"task": number} for number in numbers if to_id(number) is not None]


# -- replies without JSON
# --------------------------------------------------------------------------------------------------


def _read_words(text: str) -> _Plan:
    body = _CODE_FENCE.sub("", text).strip()
    if body.startswith(("{", "[{", '["')) or '"tasks"' in text:
        raise MalformedReplyError(NOT_READ)
    if _NO_REPLY.search(text) or (_APOLOGY.match(body[:200]) and _REFUSAL.match(body)):
        raise MalformedReplyError(NOT_SAID)
    text, lacks = _split_verdicts(text)
    body = _CODE_FENCE.sub("", text).strip() if lacks else body
    if _NOT_NEEDED.match(body):
        return _Plan(lacks=lacks, is_stated=True)
    plan = _Plan(lacks=lacks)
    listed = read_listed(text)
    if listed is not None:
        plan.take(listed)
        return plan
    if is_nothing(body) or (len(body) < 600 and _SAYS_NOTHING.search(body)):
        return plan
    if lacks and not body:
        return replace(plan, is_broken=True)
    raise MalformedReplyError(NOT_SAID)


def _split_verdicts(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Remove the lines that call a finished task unanswered, such as "Task 3 lacks the price".
    Return the remaining text, and an object for each removed line."""
    lacks: list[dict[str, Any]] = [
        {"task": found["task"], "lacks": _BEFORE_LACK.sub("", found["lack"], count=1)}
        for found in _VERDICT.finditer(text)
    ]
    return _VERDICT.sub("", text), lacks


# -- names, ids and references
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A proposed task whose references to other tasks (`after`, `source`) are still the values that
    the reply gave."""

    name: str
    after: Any = None
    label: str = ""
    source: Any = None


def _to_reply(
    plan: _Plan, *, known: frozenset[int], finished: frozenset[int], max_tasks: int
) -> CreationReply:
    drafts, aliases, is_readable = _to_drafts(plan.items, known)
    fitting = [draft for draft in drafts if len(draft.name) <= MAX_NAME_CHARS]
    kept = fitting[:max_tasks]
    siblings = _Siblings(kept, aliases, known)
    folded = (fold_keys(item) for item in plan.items if isinstance(item, dict))
    unanswered = _to_unanswered([*plan.lacks, *filter(_is_lack, folded)], siblings, finished)
    if not drafts and not unanswered and (not is_readable or plan.is_broken):
        raise MalformedReplyError(NOT_READ)
    long = [draft.name for draft in drafts if len(draft.name) > MAX_NAME_CHARS]
    over = [draft.name for draft in fitting[max_tasks:]]
    notes = [
        f"{len(long)} with a name over {MAX_NAME_CHARS} characters" if long else "",
        f"{len(over)} over the {max_tasks} allowed" if over else "",
    ]
    left_out = " and ".join(filter(None, notes))
    return CreationReply(
        tasks=tuple(_to_task(draft, siblings, finished) for draft in kept),
        is_met=plan.is_met,
        unanswered=unanswered,
        dropped=tuple(name[:MAX_NAME_CHARS] for name in (*long, *over)),
        note=f"left out: {left_out}" if left_out else "",
    )


def _to_task(draft: _Draft, siblings: _Siblings, finished: frozenset[int]) -> Proposal:
    sources = map(to_id, _to_references(draft.source))
    after = tuple(
        one for one in siblings.resolve(draft.after) if one not in (draft.label, draft.name)
    )
    return Proposal(
        name=draft.name,
        after=after,
        label=draft.label,
        parent_id=next((id_ for id_ in sources if id_ in finished), None),
        origins=("model",),
    )


def _to_drafts(
    items: list[Any], known: frozenset[int]
) -> tuple[list[_Draft], dict[str, str], bool]:
    """Return (tasks, names by label, whether all items could be read). If a name is repeated, only
    the first task is kept, and the labels of the others refer to it. An item without a name could
    be read if it says that there is no task."""
    drafts: dict[str, _Draft] = {}
    name_by_label: dict[str, str] = {}
    is_readable = True
    names = _without_numbering([_item_name(item) for item in items])
    for item, name in zip(items, names, strict=True):
        if _is_nameless(item, name) or isinstance(item, CutObject):
            is_readable &= _says_none(item, name)
            continue
        draft = _to_draft(item, name, known)
        first = drafts.setdefault(draft.name.casefold(), draft)
        label = fold(draft.label)
        if first is draft and label in name_by_label:
            drafts[draft.name.casefold()] = replace(draft, label="")
        name_by_label.setdefault(label, first.name)
    return list(drafts.values()), name_by_label, is_readable


def _is_nameless(item: Any, name: str) -> bool:
    """Return whether `name`, the text where the item should have its name, does not name a task. It
    may be blank, say "none", be only the item's label, or be the hexadecimal mark that surrounds
    data in the prompt, which small models copy."""
    if not has_words(name) or is_nothing(name) or _FENCE_MARK.fullmatch(name):
        return True
    label = first_of(fold_keys(item), LABEL_KEYS) if isinstance(item, dict) else None
    return len(name) == 1 and str(label).casefold() == name.casefold()


def _says_none(item: Any, name: str) -> bool:
    """Return whether an item without a name says that no task is proposed. Otherwise the item is
    unreadable, or a part of a task that was cut off."""
    if isinstance(item, dict) and item:
        folded = fold_keys(item)
        is_form = isinstance(folded.get("name"), str) and not _is_foreign(folded)
        is_whole_form = is_form and not isinstance(item, CutObject)
        is_empty = any(folded.get(key, 0) in (None, "") for key in NAME_KEYS)
        return is_nothing(name) or is_whole_form or is_empty or _is_lack(folded)
    return not item or (isinstance(item, str) and (not has_words(item) or is_nothing(name)))


def _item_name(item: Any) -> str:
    if isinstance(item, dict):
        folded = fold_keys(item)
        name = "" if _is_foreign(folded) else _name_of(folded)
        if not name and len(item) == 1:
            (key, value) = next(iter(item.items()))
            is_label = len(str(key)) <= 12 and to_key(key) not in _OWN_KEYS
            name = value if is_label and isinstance(value, str) else ""
    else:
        name = item if isinstance(item, str) else ""
    name = own_turn(name) if "\n" in name or "<" in name else name
    name = _without_urgency(unwrap(to_line(_without_question(name))))
    return "" if len(name) < 60 and _PLAIN_NUMBER.fullmatch(name) else name


def _without_urgency(name: str) -> str:
    """Return the name without a note in brackets that says how urgent the task is, such as "(high
    priority)". A single word, such as "(high)", is removed only if the name before it is in
    bold."""
    name = unwrap(_URGENCY_FIRST.sub("", name))
    note = _URGENCY.search(name, max(0, len(name) - MAX_URGENCY_CHARS))
    if note is None:
        return name
    before = name[: note.start()]
    bare = unwrap(before)
    return bare if bare and (bare != before or not note["bare"]) else name


def _without_question(name: str) -> str:
    """Return the name without the turn of another speaker that the model invented after it, as in
    "Find the date. Human: Which date?"."""
    if not name.rstrip().endswith("?"):
        return name
    return name[:-MAX_QUESTION_CHARS] + _NEXT_SPEAKER.sub("", name[-MAX_QUESTION_CHARS:])


def _name_of(node: Mapping[str, Any]) -> str:
    """Return the name of a task from its object: of the texts under the keys for names, the first
    that has several words, else the first; '' if there is none."""
    texts = [text for text in _texts(node) if to_id(text) is None]
    if not texts and (inner := _inner_of(node, "task", "newtask", "item", "name")):
        texts = _texts(inner)
    return next((text for text in texts if " " in text.strip()), texts[0] if texts else "")


def _texts(node: Mapping[str, Any]) -> list[str]:
    found = (node.get(key) for key in NAME_KEYS)
    return [text for text in found if isinstance(text, str) and has_words(text)]


def _inner_of(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the first value under these keys that is an object, with folded keys (`fold_keys`);
    {} if there is none."""
    found = (node.get(key) for key in keys)
    return next((fold_keys(one) for one in found if isinstance(one, dict)), {})


def _without_numbering(names: list[str]) -> list[str]:
    """Return the names without list numbers if these are 1, 2, 3, … in order, else unchanged."""
    numbers = [_NUMBERING.match(name) for name in names]
    if not all(found and int(found[1]) == n for n, found in enumerate(numbers, start=1)):
        return names
    return [unwrap(found.string[found.end() :]) for found in numbers if found]


def _to_draft(item: Any, name: str, known: frozenset[int]) -> _Draft:
    if isinstance(item, dict):
        folded = fold_keys(item)
        folded = {**_inner_of(folded, "name", "task"), **folded}
        label = first_of(folded, LABEL_KEYS)
        label = to_line(label)[:60] if isinstance(label, str) else ""
        label = "" if _PLAIN_NUMBER.fullmatch(label) or label == name else label
        after, source = first_of(folded, AFTER_KEYS), first_of(folded, SOURCE_KEYS)
        return _Draft(name=name, after=after, label=label, source=source)
    note = _AFTER_NOTE.search(name[-200:])
    numbers = [int(number) for number in re.findall(r"\d{1,18}", note[1])] if note else []
    if note and numbers and set(numbers) <= known and len(note[0]) < len(name):
        return _Draft(name=unwrap(name[: -len(note[0])]), after=numbers)
    return _Draft(name=name)


class _Siblings:
    """Resolves the references of proposed tasks: to other tasks of the reply by label or name, and
    to existing tasks by id."""

    def __init__(
        self, kept: list[_Draft], name_by_label: Mapping[str, str], known: frozenset[int]
    ) -> None:
        self._known = known
        self._by_name = {fold(draft.name).rstrip(" ."): draft.label or draft.name for draft in kept}
        self._by_label = {
            label: self._by_name.get(fold(name).rstrip(" ."))
            for label, name in name_by_label.items()
            if label
        }

    def resolve(self, value: Any) -> tuple[int | str, ...]:
        """Return the tasks to which the value of an `after` refers, each once: an existing task by
        its id, a task of the reply by its label or else its name. References to anything else are
        dropped."""
        found: dict[int | str, None] = {}
        for reference in _to_references(value):
            parts: list[int | str | None] = [self._find(reference)]
            if parts == [None] and isinstance(reference, str):
                parts = [*map(self._find, _REFERENCE_END.split(reference))]
            found.update(dict.fromkeys(part for part in parts if part is not None))
        return tuple(found)

    def _find(self, reference: int | str) -> int | str | None:
        if isinstance(reference, str):
            folded = fold(reference).rstrip(" .")
            sibling = self._by_label.get(folded) or self._by_name.get(folded)
            if sibling is not None:
                return sibling
        id_ = to_id(reference)
        return id_ if id_ in self._known else None


def _to_references(value: Any) -> list[int | str]:
    """Return the references in the value of an `after` as integers and texts. The value may be one
    reference or a list; an object stands for its id or name."""
    references: list[int | str] = []
    for reference in _flatten(value) if isinstance(value, list) else [value]:
        if isinstance(reference, dict):
            inner = _flatten(list(reference.values()))
            keys = ("id", "task", "taskid", "name", "label")
            reference = first_of(fold_keys(reference), keys)  # noqa: PLW2901  # what it names
            if reference is None:
                references += _to_references(
                    [one for one in inner if not isinstance(one, dict | list)]
                )
        if isinstance(reference, str):
            references.append(reference[:MAX_REFERENCE_CHARS])
        elif (id_ := to_id(reference)) is not None:
            references.append(id_)
    return references


def _to_unanswered(
    lacks: Iterable[Mapping[str, Any]], siblings: _Siblings, finished: frozenset[int]
) -> tuple[Unanswered, ...]:
    found: dict[int, Unanswered] = {}
    for lack in lacks:
        ids = (to_id(lack.get(key)) for key in _TASK_ID_KEYS)
        task_id = next((id_ for id_ in ids if id_ is not None), None)
        if task_id is None and len(finished) == 1:
            (task_id,) = finished
        written = first_of(lack, LACKS_KEYS)
        said = to_sentence(written)
        said = "" if _PLAIN_NUMBER.fullmatch(said) or _FENCE_MARK.fullmatch(said) else said
        answered = lack.get("answered")
        is_named = bool(said) or is_false(answered) or not (written or is_true(answered))
        if task_id not in finished or task_id is None or not is_named:
            continue
        if task_id not in found or (said and not found[task_id].lack):
            after = siblings.resolve(first_of(lack, AFTER_KEYS))
            found[task_id] = Unanswered(task_id=task_id, lack=said, after=after)
    return tuple(found.values())


# -- a result followed by its plan
# --------------------------------------------------------------------------------------------

_COMBINED_KEYS = frozenset({"lacks", "tasks", "objectivemet"})
_PLAN_WORD = re.compile(
    r"\b(?:json|plan|planning|tasks?|next|follow-ups?|proposals?|lacks?|object)\b", re.IGNORECASE
)
_OPENING_FENCE = re.compile(r"`{3,}\w*\Z")
_FENCE_LINE = re.compile(r"^[ \t]*`{3}", re.MULTILINE)
_RULE = re.compile(r"[-=*_]{3,}")
# the beginning of a plan: `{"tasks"`, or only `{"ta` at the end of the text
_BEGUN_BLOCK = re.compile(
    r"^[ \t]*(?:`{3}\w*\s*)?\{\s*+(?:\"(?:lacks|tasks|objective_met)\"|\"?\w*\Z)", re.MULTILINE
)
MAX_BLOCK_CHARS = 20_000
MAX_BLOCK_STARTS = 9
MAX_CHATTER_CHARS = 200  # a longer text after a plan that begins the reply is kept


def split_combined(
    text: str, *, known_ids: Collection[int], max_tasks: int
) -> tuple[str, CreationReply | None, str]:
    """Split a reply that has a task's result and, at its end, a plan: a JSON object with the keys
    `lacks`, `tasks` and `objective_met`.

    Only the last JSON object of the reply can be the plan. All other JSON belongs to the result,
    which is returned unchanged.

    Returns:
        (result, plan, lacks): the plan is None if there is none, or if it is cut off or cannot be
        read; `lacks` is what the result does not answer, '' for nothing.
    """
    text = without_end_marks(without_thoughts(text))
    begin = max(0, len(text) - MAX_REPLY_CHARS)
    block = _find_block(text[begin:])
    if block is None:
        return _without_begun_block(text).strip(), None, ""
    value, is_whole = _unnest(block.value), block.is_whole
    result = _around(text, begin + block.start, begin + block.end if is_whole else len(text))
    lacks = to_sentence(value.get("lacks"))
    plan = _Plan()
    plan.take({key: inner for key, inner in value.items() if key != "lacks"})
    reply = None
    if is_whole:
        known = frozenset(known_ids)
        with suppress(MalformedReplyError):
            reply = _to_reply(plan, known=known, finished=frozenset(), max_tasks=max_tasks)
    return result, reply, lacks


def _find_block(text: str) -> JsonValue | None:
    """Return the last JSON object of the text if it is a plan, also if the text before it has
    brackets that are never closed."""
    found = find_json(text)
    if found and len(found) < MAX_VALUES and _is_block(found[-1]):
        return found[-1]
    begin = max(0, len(text) - MAX_BLOCK_CHARS)
    opened = list(re.finditer(r"^[ \t]*\{", text[begin:], re.MULTILINE))
    for start in [begin + match.start() for match in opened][:-MAX_BLOCK_STARTS:-1]:
        inner = find_json(text[start:])
        if len(inner) == 1 and _is_block(inner[0]):
            return replace(inner[0], start=start + inner[0].start, end=start + inner[0].end)
    return None


def _is_block(json_: JsonValue) -> bool:
    """Return whether a JSON object is a plan: it has several keys of a plan; or it has no other
    keys, and no words stand before it on its line except a label such as `Plan:`."""
    value = _unnest(json_.value)
    keys = value.keys() & _COMBINED_KEYS
    begins_line = not has_words(json_.before) or json_.before.rstrip(" *`").endswith((":", "="))
    is_typed = isinstance(value.get("tasks"), list | dict | None)
    has_only_keys = bool(keys) and value.keys() <= _COMBINED_KEYS
    return is_typed and (len(keys) > 1 or (has_only_keys and begins_line))


def _unnest(value: Any) -> dict[str, Any]:
    folded = fold_keys(value) if isinstance(value, dict) else {}
    if len(folded) != 1 or folded.keys() & _COMBINED_KEYS:
        return folded
    (inner,) = folded.values()
    return fold_keys(inner) if isinstance(inner, dict) else folded


def _around(text: str, start: int, end: int) -> str:
    """Return a reply without its plan, which is from `start` to `end`, and without the code fence
    and the heading of the plan. If the reply begins with the plan, a short text after it is left
    out as well."""
    before = text[:start].rstrip()
    fence = _OPENING_FENCE.search(before[-20:])
    if fence and len(_FENCE_LINE.findall(before)) % 2:
        before = before[: -len(fence[0])]
    before = without_end_marks(before)
    for _ in range(2):
        line = before[before.rfind("\n") + 1 :]
        if _is_plan_heading(line.strip()):
            before = before[: len(before) - len(line)].rstrip()
    after = text[end:].strip().removeprefix("```").strip()
    if not before.strip() and len(after) <= MAX_CHATTER_CHARS:
        return ""
    return f"{before}\n\n{after}".strip()


def _is_plan_heading(line: str) -> bool:
    if _RULE.fullmatch(line):
        return True
    is_bold = line.startswith("**") and line.endswith("**")
    is_heading = is_bold or line.startswith("#") or line.endswith((":", ":**"))
    return len(line) <= 100 and is_heading and _PLAN_WORD.search(line) is not None


def _without_begun_block(text: str) -> str:
    """Return the text without the beginning of a plan at its end that is too short to be read."""
    begun = list(_BEGUN_BLOCK.finditer(text[-MAX_REPLY_CHARS:]))
    if not begun:
        return text
    start = max(0, len(text) - MAX_REPLY_CHARS) + begun[-1].start()
    inner = find_json(text[start:])
    return text if inner and inner[0].is_whole else _around(text, start, len(text))
