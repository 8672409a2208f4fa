"""The house rules that a linter does not know: sizes, weight of an import, rooms, one vocabulary
per line."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.compared import (
    FORM,
    MAX_PATTERNS,
    MAX_WORDS,
    find_sites,
    judge,
    read_register,
    totals,
)

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "babyagi").rglob("*.py"))
MAX_FUNCTION_LINES = 60


def test_a_function_can_be_held_in_the_head():
    n_lines = {
        f"{path.relative_to(ROOT)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: n for name, n in n_lines.items() if n > MAX_FUNCTION_LINES} == {}


def test_every_file_has_a_room():
    rooms = set(
        "agents app cli components duties files guide index llm memory net pages react reporting retrieval "
        "runtime sandbox serve settings taskstore tools verbs worker".split()
    )
    halls = set(
        "__init__ __main__ agent api client errors events inbox journal loop marks policy redaction "
        "tasks text".split()
    )
    found = {
        path.relative_to(ROOT / "babyagi")
        for path in (ROOT / "babyagi").rglob("*")
        if path.suffix in (".py", ".md", ".sql")
    }

    assert {str(path) for path in found if len(path.parts) == 1 and path.stem not in halls} == set()
    assert {path.parts[0] for path in found if len(path.parts) > 1} == rooms


def test_sql_stands_in_sql_files_only():
    statement = re.compile(
        r"\b(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE)\b"
    )
    found = [
        str(path)
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if statement.search(line)
    ]

    assert found == []


def test_only_settings_reads_the_environment():
    reads = re.compile(r"os\.environ|os\.getenv|load_dotenv")
    allowed = {"settings", "cli", "__init__.py"}
    found = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if reads.search(path.read_text(encoding="utf-8"))
        and path.relative_to(ROOT / "babyagi").parts[0] not in allowed
    ]

    assert found == []


def test_only_the_command_line_prints():
    printing = ("print", "click.echo", "sys.stdout.write", "sys.stderr.write")
    names = tuple(name.rpartition(".")[2] for name in printing)

    def prints(path):
        source = path.read_text(encoding="utf-8")
        return any(name in source for name in names) and any(
            ast.unparse(node.func) in printing
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) in names
        )

    assert [str(path.relative_to(ROOT)) for path in SOURCES if prints(path)] in (
        [],
        ["babyagi/cli/text.py"],
    )


@pytest.mark.system
@pytest.mark.parametrize(
    "statement",
    [
        "import babyagi",
        "import babyagi.settings",
        "import babyagi.taskstore.sqlite",
        "import babyagi.llm.client",
        "import babyagi.cli",
    ],
)
def test_importing_loads_no_heavy_client(statement):
    heavy = set(
        "openai chromadb rich numpy genai_prices httpx2 yaml markdown_it opentelemetry cronsim".split()
    )
    code = f"{statement}\nimport sys\nprint(' '.join(sorted(set(sys.modules) & {heavy!r})))"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert loaded == []


@pytest.mark.system
def test_importing_babyagi_loads_no_third_party_module():
    code = (
        "import sys; before = set(sys.modules); import babyagi; print(' "
        "'.join(sorted(set(sys.modules) - before)))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) == {"babyagi"}


# -- what texts are compared with
# --------------------------------------------------------------------------------------------------

WRITTEN = {
    "a set": 'WORDS = frozenset("missing absent".split())\ndef f(t): return t in WORDS',
    "keys": 'WORDS = {"missing": 1, "absent": 2}\ndef f(t): return WORDS.get(t)',
    "a loop": 'def f(t): return any(word in t for word in ("missing", "absent"))',
    "one word each": 'def f(t): return t == "missing" or t.startswith("absent")',
    "cases": 'def f(t):\n    match t:\n        case "missing" | "absent":\n            return 1',
    "keys that are read": 'def f(t): return t["missing"] or t.get("absent")',
    "a constant": 'MISSING = "missing absent"\ndef f(t): return MISSING in t',
    "a function": 'def has(t, word): return word in t\ndef f(t): return has(t, "missing absent")',
    "never used": 'WORDS = ("missing", "absent")',
}
MATCHED = {
    "a pattern": 'PATTERN = re.compile(r"\\b(?:missing|absent)\\b")',
    "made of parts": 'PATTERN = re.compile("|".join(("missing", "absent")))',
    "in a function": 'def f(t): return re.search(r"missing\\s|absent\\s", t)',
    "made in a function": 'OF = "missing|absent"\ndef f(t): return re.search(rf"\\b{OF}\\b", t)',
    "a string": 'OF = "missing|absent"\ndef f(t): return re.search(OF, t)',
}


@pytest.fixture
def sites_of(tmp_path, monkeypatch):
    """Return what finds the sites of a package with one module of this source."""

    def find(source):
        package = tmp_path / f"little_{tmp_path.name}".replace("-", "_")
        package.mkdir()
        (package / "__init__.py").touch()
        head = "import re\n"
        (package / "one.py").write_text(head + source, "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return find_sites(package)

    return find


@pytest.mark.parametrize("source", (WRITTEN | MATCHED).values(), ids=(WRITTEN | MATCHED).keys())
def test_words_that_a_text_is_compared_with_are_found_wherever_they_stand(source, sites_of):
    words = {word for site in sites_of(source) for word in site.words}

    assert words == {"missing", "absent"}


@pytest.mark.parametrize("source", MATCHED.values(), ids=MATCHED.keys())
def test_a_pattern_counts_once_however_it_is_made(source, sites_of):
    assert [len(site.patterns) for site in sites_of(source) if site.patterns] == [1]


@pytest.mark.parametrize(
    "source",
    [
        'PATTERN = re.compile(r"\\d+")',
        'def f(t): return t.split(", ")',
        'def f(t): raise ValueError("it is missing")',
        'WHY = "it is missing"\ndef f(): return WHY',
    ],
)
def test_what_is_said_and_what_has_no_letter_is_no_site(source, sites_of):
    assert sites_of(source) == []


def test_a_file_of_words_is_a_site(tmp_path, sites_of):
    find_sites_again = sites_of("")
    package = next(tmp_path.iterdir())
    (package / "words.txt").write_text("missing\nabsent\n", "utf-8")

    assert find_sites_again == []
    assert [list(site.words) for site in find_sites(package)] == [["missing", "absent"]]


def test_a_site_without_a_reason_and_a_reason_without_a_site_are_faults(sites_of):
    found = judge(sites_of('def f(t): return t == "missing"'), {FORM: {"two.py": "a label"}})

    assert len(found.faults) == 2
    assert 'support/compared.toml: "one.py:f"' in found.faults[0]
    assert totals(found.of(FORM)) == (1, 0)


def test_an_entry_for_a_whole_file_does_not_hide_a_list_of_words(sites_of):
    words = " ".join(f"word{'a' * n}" for n in range(50))
    sites = sites_of(f'WORDS = "{words}".split()')

    assert judge(sites, {"other": {"one.py": "fields"}}).faults
    assert not judge(sites, {"other": {"one.py:WORDS": "fields"}}).faults


@pytest.mark.thorough
def test_words_and_patterns_that_texts_are_compared_with_are_few_and_each_has_its_reason():
    found = judge(find_sites(ROOT / "babyagi"), read_register())
    n_words, n_patterns = totals(found.of(FORM))

    assert found.faults == []
    assert n_words <= MAX_WORDS
    assert n_patterns <= MAX_PATTERNS
