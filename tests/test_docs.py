"""The guide and the documents against the code: topics, commands, settings, exit codes, links,
names that are reserved."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path

import click
import pytest
from click.core import ParameterSource

from babyagi.cli.exits import ExitCode, code_of_objective
from babyagi.cli.root import babyagi as command_group
from babyagi.cli.root import route
from babyagi.duties.planning import N_COMPARED
from babyagi.loop import N_WINDOW_HEAD, N_WINDOW_NEW
from babyagi.settings.fields import declared_fields
from babyagi.tasks import ObjectiveStatus, StopReason, TaskStatus

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "babyagi" / "guide").glob("*.md"))
DOCUMENTS = [
    *PAGES,
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
]
PROMISED_TOPICS = (
    "start models limits recovery tasks results settings commands safety tools docker".split()
)
WORDS = (
    "objective, task, result, worker, claim, lease, heartbeat, fence, step, tool, tool "
    "call, observation, passage, limit, reservation, "
    "usage, stop reason, event"
).split(", ")
REPLACED_WORDS = "hindrances? barren fruitless outlook projector feeder surroundings".split()
PATHS_IN = ("README", "CONTRIBUTING", "SECURITY")
MAX_LINE_CHARS = 700
MAX_PAGE_LINES = 110


def by_name(path):
    return str(path.relative_to(ROOT))


def read(path):
    return path.read_text(encoding="utf-8")


@cache
def nodes_of_program():
    """(path, node) of every call, function and text in the sources."""
    kinds = ast.Call | ast.FunctionDef | ast.Constant | ast.JoinedStr
    return [
        (path, node)
        for path in sorted((ROOT / "babyagi").rglob("*.py"))
        for node in ast.walk(ast.parse(read(path)))
        if isinstance(node, kinds)
    ]


def topics_named_by_errors():
    """Every text that stands for `guide` in a call, or is its default."""
    topics = set()
    for _, node in nodes_of_program():
        if isinstance(node, ast.Call):
            topics |= {_text(keyword.value) for keyword in node.keywords if keyword.arg == "guide"}
        elif isinstance(node, ast.FunctionDef):
            defaults = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            topics |= {_text(default) for argument, default in defaults if argument.arg == "guide"}
    return topics - {""}


def _text(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_the_guide_has_a_page_for_every_topic():
    assert set(PROMISED_TOPICS) <= {page.stem for page in PAGES}


def test_every_topic_that_an_error_names_is_a_page_of_the_guide():
    named = topics_named_by_errors()

    assert named, "the errors name no topic, so this test looks in the wrong place"
    assert named - {page.stem for page in PAGES} == set()


def parse(words):
    """Parse what is typed after `babyagi` as the program does, without running it. A value may be a
    placeholder, and one that is left out is only a mention. A name that went is refused."""
    words = ["1" if word.isupper() else word for word in words]
    with suppress(
        click.BadParameter, click.BadOptionUsage, click.exceptions.Exit,
        click.exceptions.NoArgsIsHelpError,
    ):  # fmt: skip
        _parse(command_group, "babyagi", route(words), parent=None)


def _parse(command, name, words, parent):
    context = command.make_context(name, [*words], parent=parent)
    for option in context.command.params:
        if getattr(option, "hidden", False) and is_typed(context, option):
            raise click.UsageError(f"{option.opts[-1]} went from {name}")
    if isinstance(command, click.Group) and (rest := [*context._protected_args, *context.args]):
        name, inner, words = command.resolve_command(context, rest)
        _parse(inner, name, words, parent=context)


def is_typed(context, option):
    return context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE


def words_of_command(text):
    """The words up to the end of the command, as a shell reads them."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words = []
    with suppress(ValueError):  # a quotation that does not end
        for word in lexer:
            if set(word) <= set("();<>|&"):
                break
            words.append(word.strip("[]"))
    return [word for word in words if word.strip(".…")]


def commands_of_page(text):
    """What is typed after `babyagi` in the code of a page."""
    blocks = re.findall(r"^```(?:sh|console|text|)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    inline = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [
        words_of_command(found)
        for line in [*lines, *inline]
        for found in re.findall(r"(?:^|(?<=[\s/(]))babyagi +([a-z-].*)", line)
    ]


def commands_of_text(text):
    """What is typed after `babyagi` in sentences: the names, and the options up to the next sign.
    Where the command ends is not to be seen, so further words are none of it."""
    for found in re.findall(r"(?<![\w/.-])babyagi ([a-z][^,;:.()`\n]*)", text):
        first, *rest = (word.strip("\"'") for word in found.split())
        within = getattr(command_group.commands.get(first), "commands", {})
        options = [word for word in rest if re.fullmatch("--[a-z][a-z-]*", word)]
        inner = [word for word in rest[:1] if word in within]
        yield [first, *inner, *options]


def wrong(commands):
    """The commands that the program would not take, with what it says."""
    said = {}
    for words in commands:
        try:
            parse(words)
        except click.UsageError as error:
            said[" ".join(words)] = error.format_message()
    return said


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_every_command_in_the_documents_is_one_that_the_program_takes(path):
    assert wrong(commands_of_page(read(path))) == {}


def texts_of_program():
    """Every text in the sources that says `babyagi …`: errors, help, lines on the screen."""
    for path, node in nodes_of_program():
        if "babyagi " in (text := _told(node)):
            yield f"{by_name(path)}:{node.lineno}", text


def _told(node):
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_told(part) or "X" for part in getattr(node, "values", ()))


def test_every_command_that_the_program_names_is_one_that_it_takes():
    told = {place: [*commands_of_text(text)] for place, text in texts_of_program()}
    families = (getattr(one, "commands", {}) for one in command_group.commands.values())
    inner = {name for family in families for name in family}
    # in a sentence the program may be what does something: "babyagi works on"
    known = {
        place: [words for words in found if words[0] in {*command_group.commands, *inner}]
        for place, found in told.items()
    }

    assert sum(map(len, known.values())) > 150
    assert {place: said for place, found in known.items() if (said := wrong(found))} == {}


def test_every_command_that_an_error_tells_people_to_type_exists():
    told = {place: [*commands_of_text(text)] for place, text in remedies()}

    assert sum(map(len, told.values())) > 50
    assert {place: said for place, found in told.items() if (said := wrong(found))} == {}


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("babyagi serve --tools web --files ~/documents", True),
        ("babyagi serve --colour", False),
        ("babyagi servo", False),
        ("babyagi tasks list", False),
        ("babyagi log -f", False),
        ("babyagi why 3", False),
        ('babyagi run --planning combined "an objective"', False),
        ("babyagi config trust shows which wait; babyagi tasks lists them", None),
    ],
)
def test_a_command_is_parsed_as_the_program_parses_it(text, is_taken):
    if is_taken is None:
        assert [*commands_of_text(text)] == [["config", "trust"], ["tasks"]]
    else:
        assert (wrong(commands_of_page(f"`{text}`")) == {}) is is_taken


def test_the_page_of_commands_has_every_command():
    page = read(ROOT / "babyagi" / "guide" / "commands.md")

    assert [name for name in command_group.commands if f"babyagi {name}" not in page] == []


def test_every_topic_that_the_documents_send_people_to_exists():
    named = {
        topic for path in DOCUMENTS for topic in re.findall(r"babyagi guide ([a-z]+)", read(path))
    }

    assert named - {page.stem for page in PAGES} == set()


def test_the_health_check_of_the_image_is_a_command_that_exists():
    found = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", read(ROOT / "Dockerfile"), re.MULTILINE)
    assert found is not None
    program, name, *options = json.loads(found.group(1))
    command = command_group.commands[name]

    assert program == "babyagi"
    assert (
        set(options) - {option for parameter in command.params for option in parameter.opts}
        == set()
    )


@cache
def remedies():
    """(place, text) of every `fix` that an error gives, as it stands in the source."""
    return [
        (f"{by_name(path)}:{call.lineno}", ast.unparse(keyword.value))
        for path, call in nodes_of_program()
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "fix"
    ]


def test_no_error_tells_people_to_type_a_bare_value_where_an_option_belongs():
    takers = {
        name
        for name, command in command_group.commands.items()
        if any(isinstance(one, click.Argument) for one in getattr(command, "own", command).params)
    }
    told = {
        name: place
        for place, text in remedies()
        for name in re.findall(r"\bbabyagi ([a-z]+) \{", text)
    }

    assert {name: place for name, place in told.items() if name not in takers} == {}


@pytest.mark.parametrize("path", PAGES, ids=by_name)
def test_every_option_on_a_page_exists(path):
    known = {"--build", "--rm", "--env-file", "--help", "--version"}  # docker's, and click's own
    known |= {"--user", "--now"}  # systemd's
    nested = [
        inner
        for outer in command_group.commands.values()
        if isinstance(outer, click.Group)
        for inner in outer.commands.values()
    ]
    for command in [command_group, *command_group.commands.values(), *nested]:
        known |= {option for parameter in command.params for option in parameter.opts}

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", read(path))) - known == set()


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=by_name)
def test_every_variable_on_a_page_is_a_setting(path):
    known = {variable for declared in declared_fields().values() for variable in declared.variables}

    assert set(re.findall(r"\bBABYAGI_[A-Z_]+\b", read(path))) - known == set()


def test_the_exit_codes_on_the_page_of_commands_are_those_of_the_program():
    rows = re.findall(
        r"^\| (`.+`) \|.*\| (\d+) \|$",
        read(ROOT / "babyagi" / "guide" / "commands.md"),
        re.MULTILINE,
    )
    written = {
        reason: int(code) for reasons, code in rows for reason in re.findall(r"`([\w:]+)`", reasons)
    }

    assert {reason: code_of_objective(ended_by(reason)) for reason in StopReason} == {
        reason: written.get(reason) for reason in StopReason
    }


def ended_by(reason):
    class Ended:
        stop_reason = reason
        status = ObjectiveStatus.ENDED

    return Ended()


def test_the_page_of_commands_names_every_exit_code():
    written = {
        int(code)
        for code in re.findall(
            r"\| (\d+) \|$", read(ROOT / "babyagi" / "guide" / "commands.md"), re.MULTILINE
        )
    }

    assert written == {int(code) for code in ExitCode}


def test_the_page_of_tasks_says_how_much_of_the_list_is_shown_and_compared():
    page = read(ROOT / "babyagi" / "guide" / "tasks.md")

    assert f"the first {N_WINDOW_HEAD} queued tasks and the newest {N_WINDOW_NEW} " in page
    assert f"repeat one of the last {N_COMPARED} finished tasks" in read(
        ROOT / "babyagi" / "guide" / "objectives.md"
    )


def test_the_page_of_tasks_names_every_state():
    assert set(
        re.findall(r"^\| (\w+) \|", read(ROOT / "babyagi" / "guide" / "tasks.md"), re.MULTILINE)
    ) - {"state"} == set(TaskStatus)


@pytest.mark.parametrize("path", PAGES, ids=by_name)
def test_a_page_opens_with_what_the_reader_wants_and_has_something_to_type(path):
    title, _, rest = read(path).partition("\n\n")
    opening = rest.split("\n## ", 1)[0]

    assert re.fullmatch("# .+", title)
    assert re.match(r"\w", opening), "a few words on what the reader wants come first"
    assert "```" in rest
    assert len(rest.splitlines()) <= MAX_PAGE_LINES


@pytest.mark.parametrize("path", PAGES, ids=by_name)
def test_the_paragraphs_of_a_page_are_short(path):
    prose = re.sub(r"```.*?```", "", read(path), flags=re.DOTALL).splitlines()

    assert [line[:80] for line in prose if len(line) > MAX_LINE_CHARS] == []


def test_the_layers_on_the_page_are_those_that_are_held():
    contract, *_ = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    held = [set(layer.replace("babyagi.", "").split(" | ")) for layer in contract["layers"]]

    rows = re.findall(
        r"^\| (\d+) \| `(\w+)(?:/|\.py)` \|",
        read(ROOT / "docs" / "architecture.md"),
        re.MULTILINE,
    )
    shown = [{room for layer, room in rows if int(layer) == n} for n in range(1, len(held) + 1)]

    assert shown == held
    assert len(rows) == sum(map(len, held))


def test_every_name_that_the_picture_of_the_house_finds_in_a_file_is_there():
    page = read(ROOT / "docs" / "architecture.md")
    found = re.findall(r"`([\w/]+\.(?:py|sql))` \(`(\w+)`\)", page)

    assert len(found) > 20
    assert [
        (path, name)
        for path, name in found
        if not re.search(
            rf"^ *(?:(?:async )?def|class) {name}\b|^-- {name} --$",
            read(ROOT / "babyagi" / path),
            re.MULTILINE,
        )
    ] == []


def test_every_name_in_a_recipe_is_in_the_code():
    sources = [*(ROOT / "babyagi").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), ROOT / "check"]
    words = {word for path in sources for word in re.findall(r"\w+", read(path))}

    named = re.findall(r"`([A-Za-z_]\w*)`", read(ROOT / "CONTRIBUTING.md"))

    assert len(named) > 50
    assert [name for name in named if name not in words] == []


def test_the_glossary_has_the_words_of_the_house():
    defined = {
        row.strip().casefold()
        for row in re.findall(r"^\| ([^|]+) \|", read(ROOT / "docs" / "glossary.md"), re.MULTILINE)
    }

    assert [word for word in WORDS if word not in defined] == []
    assert len([one for one in defined if one != "word" and not one.startswith("-")]) <= 45


@pytest.mark.parametrize(
    "path", [*PAGES, *(ROOT / "docs").glob("*.md"), *ROOT.glob("[!C]*.md")], ids=by_name
)
def test_no_page_uses_a_word_for_which_the_field_has_a_better_one(path):
    if path.name != "log.md":  # what was tried is told in the words of its day
        assert re.findall(rf"(?i)\b(?:{'|'.join(REPLACED_WORDS)})\b", read(path)) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_no_document_names_a_path_of_some_machine(path):
    assert (
        re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|mnt)/\w+|\.\./shared", read(path))
        == []
    )


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.suffix == ".md"], ids=by_name)
def test_every_link_between_documents_leads_somewhere(path):
    targets = [
        target
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(path))
        if "://" not in target
    ]

    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_there_are_at_most_fifteen_decision_records_and_each_has_its_four_parts():
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))

    assert 0 < len(records) <= 15
    for path in records:
        text = read(path)
        assert re.match(rf"# {int(path.name[:4])}\. ", text), path.name
        parts = ["Status: ", "## Context", "## Decision", "## Consequences"]
        places = [text.find(part) for part in parts]
        assert min(places) > 0 and places == sorted(places), path.name


@pytest.mark.system
@pytest.mark.parametrize("name", ["run.py", "run_async.py"])
def test_the_examples_run_on_a_folder_without_a_key(name, tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "limits.md").write_text(
        "The limits of these documents are promised about money and a restart.\n", encoding="utf-8"
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "BABYAGI_HOME": str(tmp_path / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
    }

    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), str(documents)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert "REHEARSAL" in ran.stdout
    assert "limits.md:1" in ran.stdout


def paths_named(text):
    """What stands in backticks and looks like a path of this repository: a name with the suffix of
    a source or a document, or one that begins or ends with a folder of ours."""
    folders = [
        path.name
        for place in (ROOT, ROOT / "babyagi", ROOT / "docs")
        for path in place.iterdir()
        if path.is_dir() and not path.name.startswith((".", "_"))
    ]
    like_a_path = re.compile(
        rf"(?:[\w.-]+/)*[\w*-]+\.(?:py|sql|md|toml)|(?:{'|'.join(folders)})/[\w./*-]*|[\w-]+/"
    )
    words = [
        word
        for code in re.findall(r"`([^`\n]+)`", text)
        for word in re.findall(r"(?<![\w./{<:=-])[\w*][\w./*-]*", code)
    ]
    return {word.rstrip(".") for word in words if like_a_path.fullmatch(word.rstrip("."))}


def is_there(path):
    """Beneath the repository, or beneath one of the folders whose names the pages leave out."""
    places = [ROOT, *(ROOT / name for name in ("babyagi", "docs", "tests", "benchmarks"))]
    return any(any(place.glob(path)) for place in places)


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in PATHS_IN)],
    ids=by_name,
)
def test_every_path_that_a_document_names_is_there(path):
    assert {named for named in paths_named(read(path)) if not is_there(named)} == set()


def test_a_path_is_known_by_its_look():
    text = "`worker.py`, `index/port.py::x`, `docs/log.md`, `index/`, `.env`, `a/b`, `pytest tests/cli`"

    assert paths_named(text) == {
        "worker.py", "index/port.py", "docs/log.md", "index/", "tests/cli",
    }  # fmt: skip


def test_every_test_that_a_page_names_is_there():
    named = {
        pair
        for page in (ROOT / "docs").glob("*.md")
        for pair in re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", read(page))
    }

    assert len(named) > 30
    assert {
        f"{path}::{name}"
        for path, name in named
        if f"def {name}(" not in read(ROOT / "tests" / path)
    } == set()


@pytest.mark.system
def test_the_example_that_composes_a_loop_by_hand_does_a_task_in_forty_lines(tmp_path):
    example = ROOT / "examples" / "by_hand.py"
    (tmp_path / "limits.md").write_text("One dollar.\n", encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert "- limits.md (" in ran.stdout
    assert len(read(example).splitlines()) <= 40


@pytest.mark.system
def test_the_report_on_the_house_has_every_figure_beside_its_goal():
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.house", "--tasks", "2", "--names"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    rows = re.findall(r"^(\S.*?) +([\d.]+) +(\d+) +(met|MISSED)", ran.stdout, re.MULTILINE)
    said = {what: float(measured) for what, measured, _, _ in rows}
    assert len(said) == 16
    none = {"circles of imports", "faults of the register"}
    assert {what for what, n in said.items() if n == 0} <= none
    assert "cli/__init__.py main" in ran.stdout
    assert "journal.py Journal.complete" in ran.stdout
