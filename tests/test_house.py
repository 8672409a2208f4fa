"""The house rules that a linter does not know: sizes, weight of an import, rooms, one vocabulary
per line."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "babyagi").rglob("*.py"))
MAX_FUNCTION_LINES = 60


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_function_can_be_held_in_the_head(path):
    source = path.read_text(encoding="utf-8")
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    long = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in long.items() if lines > MAX_FUNCTION_LINES} == {}


def test_every_file_has_a_room():
    rooms = set(
        "agents cli components files guide index llm memory net pages react reporting retrieval sandbox "
        "serve settings taskstore tools worker".split()
    )
    halls = set(
        """__init__ __main__ agent api app backends errors events heavy_imports inbox journal json_shapes loop
        marks model_clients names notify offload options redaction results schedules shapes tasks text toolbox tracing
        verbs""".split()
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
