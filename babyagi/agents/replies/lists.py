"""Tasks that a reply lists without JSON: numbered, lettered or marked lines, headings, keys and
values, tables, tags, plain lines.

Prose around a list is no part of it, and prose alone is no list. Each reader returns items as JSON
would hold them: a name, or an object with the keys that the reply wrote.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from babyagi.agents.replies.reading import has_words, to_key, unwrap

NAME_KEYS = tuple(
    "name taskname tasktitle taskdescription newtask task title description todo action "
    "step subtask text content instruction what "
    "item".split()
)
AFTER_KEYS = tuple(
    (
        "after dependson dependsupon dependencies dependency depends needs requires "
        "prerequisites prerequisite blockedby"
    ).split()
)
LABEL_KEYS = ("id", "label", "key", "ref", "taskid", "letter")
SOURCE_KEYS = ("from", "source", "fromtask", "sourcetask", "origin", "parent")
TASKS_KEYS = frozenset(
    "tasks newtasks nexttasks tasklist todo todos todolist steps nextsteps newsteps "
    "subtasks actions proposedtasks proposals followups "
    "followuptasks additionaltasks furthertasks remainingtasks newtask nexttask tobedone "
    "plan tasksjson".split()
)
LACKS_KEYS = tuple("lacks lack lacking missing what reason why gap".split())
UNANSWERED_KEYS = frozenset(
    "unanswered unansweredtasks notanswered unfinished incomplete lacking openquestions".split()
)
MET_KEYS = (
    "objectivemet",
    "objectiveismet",
    "met",
    "ismet",
    "objectivereached",
    "objectiveachieved",
    "objectivecomplete",
    "objectivecompleted",
)
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
_MARK = (
    r"(?P<number>[#(\[]?\d{1,4}(?:\ufe0f?\u20e3|\s*[.):\]．）：、]+(?!\d)|\s[-–—]\s)|#\d{1,4}\s)"
    r"|(?P<circled>[①-⑳⓪❶-❿➀-➓⓵-⓾㊀-㊉])"
    r"|(?P<bullet>[-*+–‣◦▪▸►▶→⇒»☐☑☒✅✔✓○●■□◆❖]\ufe0f?\s+|[•·]\s*)"
    rf"|\(?(?P<letter>{_LETTERS})[.)](?:\s+|(?=\*\*))"
    r"|(?P<headed>(?:new |next |sub-?)?(?:task|step|todo"
    rf"|action)(?:\s+(?:{_COUNTED}))?(?:\s*[:.)]|\s[-–—])(?:\s+|(?=\*\*)))"
)
_ITEM = re.compile(
    (
        rf"(?P<heading>#{{1,6}}\s+)?(?P<bold>\*\*)?(?P<mark>{_MARK})\s*(?P<end>\*\*\s*)?(?:\[[ "
        r"xX]?\]\s+)?(?P<name>\S.*)"
    ),
    re.IGNORECASE | re.DOTALL,
)
_QUOTE_MARK = re.compile(r"^[ \t]*> ?", re.MULTILINE)
_TABLE_HEAD = re.compile(r"^\[\[(?:new_)?tasks\]\][ \t]*\n", re.MULTILINE)  # of TOML
_LONE_LABEL = re.compile(
    (
        r"^([ \t]*+(?:#{1,6} )?)(?:\*\*)?((?:task|step) "
        r"(?:\d{1,3}|[a-z]))(?:\*\*)?:?(?:\*\*)?[ \t]*+\n\s*+(?=\w)"
    ),
    re.MULTILINE | re.IGNORECASE,
)
_BLOCK_MARK = re.compile(r"\A[|>][+-]?(?:\s|\Z)")  # of a text of several lines in YAML
_ROMANS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()
_HEADING = re.compile(r"#{1,6}\s|`{3}|[-=*_.]{3,}$|\*\*[^*]+\*\*:?$|</?[\w-]+>$")
_SECTION = re.compile(
    r"(?P<open>[#*\s\[{]*+)[\"']?(?P<title>[A-Za-z][\w "
    r"'’-]{0,60}?)[\"']?[\s*]*+(?:\([^()]{0,40}\)[\s*]*+)?[\]}]*+"
    r"(?:(?P<colon>[:=])[\s*]*+(?P<value>\S.{0,60})?)?"
)
_KEYED = re.compile(
    r"[\"']?(?P<key>[A-Za-z][A-Za-z_ -]{0,24}?)[\"']?\s{0,3}[:=](?:\s+(?P<value>.*))?", re.DOTALL
)
_LEAD_BOLD = re.compile(r"\A(?:\*\*([^*]+)\*\*(?=\s*[:–—-])|\*\*([^*]+:)\*\*(?=\s))")
_SIDE_KEYS = frozenset({*AFTER_KEYS, *LABEL_KEYS, *SOURCE_KEYS, *LACKS_KEYS})
# what may stand before a name without any other key
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

_INSTRUCTION = re.compile(
    r"^Role: |\bjson\b|objective_met|listed tasks?\b|at most \d+|\btry again\b|\bcheck back\b",
    re.IGNORECASE,
)
_NO_VERBS = frozenset(
    "i the a an this that these those there here it we you he she they my your our its "
    "in on at as if for to of from by with and or but "
    "so no not none nothing yes ok okay sure sorry unfortunately please error warning "
    "exception traceback note because since however "
    "also is are was".split()
)
_VERBS = frozenset(
    "add aggregate analyse analyze answer apply archive arrange ask assemble assess "
    "assign audit benchmark book brainstorm bring "
    "browse build buy calculate call catalog categorize chart check choose cite clarify "
    "classify clean close collect combine compare "
    "compile compute conclude conduct configure confirm consider consolidate consult "
    "contact contrast convert copy correct count "
    "crawl create cross-check cut debug decide define delete deploy derive describe "
    "design detect determine develop disable discuss "
    "document download draft draw edit email enable enquire enter enumerate establish "
    "estimate evaluate examine exclude execute "
    "expand explain explore extract fetch figure fill filter finalise finalize find "
    "finish fix follow forecast format gather generate "
    "get give group highlight identify illustrate implement improve include infer inform "
    "inquire insert inspect install integrate "
    "interview investigate join judge keep label learn link list listen load locate look "
    "mail make map mark measure meet merge "
    "migrate model monitor move name negotiate note notify obtain open optimise optimize "
    "order organise organize outline parse patch "
    "perform phone pick plan plot prepare present print prioritise prioritize proofread "
    "propose prove publish pull push quantify "
    "query quote rank rate read recommend record reduce refine register remind remove "
    "rename repeat replace report reproduce request "
    "research reserve resolve restart restore retrieve review revise rework rewrite run "
    "sample scan schedule scrape search select "
    "send set shorten show sign simplify simulate sketch solve sort specify split start "
    "state stop store structure study submit "
    "suggest sum summarise summarize survey tabulate tag take talk teach tell test trace "
    "track train transcribe transform translate "
    "try tune turn update upload use validate verify visit visualise "
    "visualize watch weigh write".split()
)


def read_listed(text: str) -> dict[str, Any] | None:
    """Return the plan that the text lists, as its JSON would hold it; None when it lists
    nothing."""
    text = _QUOTE_MARK.sub("", text) if text.lstrip().startswith(">") else text
    text = _LONE_LABEL.sub(r"\1\2: ", _TABLE_HEAD.sub("- ", text))
    for read in (_read_tags, _read_table, _read_sections):
        if plan := read(text):
            return plan
    names = _read_plain_lines(text)
    return {"tasks": names} if names else None


# -- tags
# --------------------------------------------------------------------------------------------------


def _read_tags(text: str) -> dict[str, Any] | None:
    """The tasks of a reply in XML or HTML: `<task after="3">…</task>`, `<item name="…"/>`,
    `<task><name>…</name></task>`, `<li>…`."""
    if "</" not in text and "/>" not in text:
        return None
    text = _without_cdata(text)
    reader = _TagReader()
    begin = 0
    for tag in _TAG.finditer(text):
        reader.take_text(text[begin : tag.start()])
        if tag["close"]:
            reader.close(to_key(tag["tag"]))
        else:
            reader.open(
                to_key(tag["tag"]), tag["attributes"], begins_line=_begins_line(text, tag.start())
            )
        begin = tag.end()
    named = [
        item for item in reader.items if any(has_words(item.get(key, "")) for key in NAME_KEYS)
    ]
    return {"tasks": named} if named else None


def _without_cdata(text: str) -> str:
    """The text with what stands in `<![CDATA[…]]>` written in entities."""
    first, *others = text.split("<![CDATA[")
    parts = [other.partition("]]>") for other in others]
    return first + "".join(
        html.escape(inner, quote=False) + after if end else inner for inner, end, after in parts
    )


def _begins_line(text: str, at: int) -> bool:
    before = text[max(0, at - 40) : at].rstrip(" \t")
    return not before or before.endswith(("\n", ">"))


class _TagReader:
    """The tasks of tags so far, the one that is open, and the member of it that is open."""

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
    """The tasks of tables with a column whose heading says that it holds them."""
    if "|" not in text and "<t" not in text.casefold():
        return None
    items: list[dict[str, str]] = []
    keys: list[str] = []
    for line in _CELL_TAG.sub("|", _CELL_TAG_END.sub("", _ROW_TAG.sub("\n", text))).split("\n"):
        cells = _to_cells(line)
        if not cells:
            keys = []
        elif keys:
            items += (
                [dict(zip(keys, cells, strict=False))] if not _TABLE_RULE.fullmatch(line) else []
            )
        else:
            folded = [_to_column(cell) for cell in cells]
            keys = folded if any(key in NAME_KEYS for key in folded) else []
    return {"tasks": items} if items else None


def _to_cells(line: str) -> list[str]:
    line = line.strip()
    if "|" not in line:
        return []
    line = line.removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in _CELL_END.split(line)]


def _to_column(heading: str) -> str:
    key = to_key(heading)
    if key in NAME_KEYS or key in _SIDE_KEYS:
        return key
    if key.startswith(("after", "depend", "require", "prereq")):
        return "after"
    return (
        "task"
        if key.startswith(("task", "newtask", "action", "proposedtask"))
        and not key.endswith(("id", "no", "number"))
        else key
    )


# -- lines
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Item:
    """An item of a list: its lines, the first without its mark, and where the first stands."""

    kind: str
    mark: str
    depth: int
    lines: list[str] = field(default_factory=list)


def _read_sections(text: str) -> dict[str, Any] | None:
    """The lists of the text, by the headings or keys that they stand under."""
    plan: dict[str, Any] = {}
    for section, lines in _split_sections(text):
        if section == "met":
            plan["objective_met"] = lines[0]
            continue
        items = _list_items(lines)
        if section == "unanswered":
            plan.setdefault("unanswered", []).extend(_to_lack(item) for item in items)
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
    """(section, value) when the line is the heading or the key of one."""
    stripped = line.strip()
    found = _SECTION.fullmatch(stripped) if len(stripped) < 140 else None
    if (
        found is None
        or not (found["colon"] or found["open"].strip())
        or found["open"].startswith("* ")
    ):
        return None
    key, value = to_key(found["title"]), found["value"] or ""
    if key in MET_KEYS:
        return "met", value.strip(" ,\"'")
    if key in TASKS_KEYS and value:
        return (
            ("nothing", "")
            if value.strip(" ,[]{}\"'.").casefold() in ("", "none", "null", "nothing")
            else None
        )
    if value:
        return None
    if key in UNANSWERED_KEYS:
        return "unanswered", ""
    if _OTHER_SECTIONS.match(found["title"]):
        return "other", ""
    return ("tasks", "") if "task" in key or key in TASKS_KEYS else None


def _list_items(lines: Sequence[str]) -> list[_Item]:
    """The items of the lists, each with its wrapped lines and its sub-items; prose around them is
    no item."""
    matches = [_ITEM.fullmatch(line.strip()) for line in lines]
    is_sequence = _is_sequence([match["letter"] for match in matches if match and match["letter"]])
    items: list[_Item] = []
    is_open = False
    for line, match in zip(lines, matches, strict=True):
        stripped, depth = line.strip(), len(line) - len(line.lstrip())
        is_item = match is not None and (is_sequence or not match["letter"])
        if is_open and _goes_on(
            items[-1], stripped, depth=depth - items[-1].depth, is_item=is_item
        ):
            items[-1].lines.append(stripped)
        elif is_item and match is not None:
            kind = "heading" if match["heading"] else _kind_of(match)
            items.append(
                _Item(kind=kind, mark=match["mark"], depth=depth, lines=[_item_name(match)])
            )
            is_open = True
        else:
            is_open = False
    return _join_details(items)


def _kind_of(match: re.Match[str]) -> str:
    return next(kind for kind in ("number", "circled", "bullet", "letter", "headed") if match[kind])


def _is_sequence(letters: Sequence[str]) -> bool:
    """Whether the marks are a, b, c, … or i, ii, iii, …: a line that begins with "A. Smith" is no
    item."""
    folded = [letter.casefold() for letter in letters]
    return folded in (_ROMANS[: len(folded)], [chr(ord("a") + n) for n in range(len(folded))])


def _goes_on(item: _Item, line: str, *, depth: int, is_item: bool) -> bool:
    """Whether the line, indented by `depth` more than the item, belongs to it."""
    keyed = _KEYED.fullmatch(line)
    if keyed and to_key(keyed["key"]) in _SIDE_KEYS:
        return True
    if not line or is_item:
        return bool(line) and depth >= 2
    if depth >= 2:
        return True
    before = item.lines[-1]
    is_new_sentence = before.endswith((".", "!", "?", ":", "**")) or item.kind in (
        "heading",
        "headed",
    )
    return not (
        _HEADING.match(line) or line.endswith(":") or (is_new_sentence and not line[0].islower())
    )


def _item_name(item: re.Match[str]) -> str:
    is_open = item["bold"] and not item["end"]
    return ("**" if is_open else item["end"] if item["end"] and not item["bold"] else "") + item[
        "name"
    ]


def _join_details(items: list[_Item]) -> list[_Item]:
    """The items without what only details another: what stands under headings of tasks, and bullets
    between numbered lines."""
    for kinds in (("heading",), ("headed",)):
        if sum(item.kind in kinds for item in items) > 1:
            return [item for item in items if item.kind in kinds]
    kinds_in_turn = [
        item.kind for at, item in enumerate(items) if not at or item.kind != items[at - 1].kind
    ]
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
    """The item as JSON would hold it: its text, or an object where its lines are keys and
    values."""
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
    return (
        values
        if is_keyed
        else _LEAD_BOLD.sub(lambda found: found[1] or found[2], values["name"], count=1)
    )


def _to_lack(item: _Item) -> str | dict[str, str]:
    value = _to_value(item)
    return value if isinstance(value, dict) or item.kind != "number" else f"{item.mark} {value}"


# -- plain lines
# --------------------------------------------------------------------------------------------------


def _read_plain_lines(text: str) -> list[str]:
    """The lines of a reply that is nothing but short orders, one a line, maybe under a line that
    ends with a colon."""
    lines = [
        line.strip()
        for line in text.split("\n")
        if line.strip() and not line.lstrip().startswith("```")
    ]
    lines = [
        unwrap(line.rstrip(","))
        for line in (lines[1:] if lines and lines[0].endswith(":") else lines)
    ]
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
