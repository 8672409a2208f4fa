"""Functions of the person's own as tools, from a module, a file or a folder."""

import pytest

from babyagi.errors import SettingsError
from babyagi.tasks import Effect
from babyagi.tools.declare import load_tools

PRICES = '''
import babyagi
from json import dumps

def price(item: str) -> float:
    """Look up what an item costs."""
    return 2.5

@babyagi.tool(effect="read")
def stock(item: str) -> int:
    """Look up how many there are."""
    return 3

def no_docstring(item: str) -> float:
    return 1.0

def _own(item: str) -> float:
    """Not for others."""
    return 1.0

BOTH = [price, stock]
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "some_prices.py").write_text(PRICES)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.py").write_text(PRICES)
    (tmp_path / "tools" / "b.py").write_text('def rest() -> int:\n    """Count."""\n    return 1\n')
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("some_prices", ["price", "stock"]),
        ("some_prices:price", ["price"]),
        ("some_prices:BOTH", ["price", "stock"]),
        ("some_prices.py", ["price", "stock"]),
        ("some_prices.py:stock", ["stock"]),
        ("tools", ["price", "stock", "rest"]),
    ],
)
async def test_public_functions_with_a_docstring_are_tools(folder, reference, names):
    tools = {tool.name: tool for tool in load_tools(reference, cwd=folder)}

    assert list(tools) == names
    if "stock" in tools:
        assert tools["stock"].effect is Effect.READ
    if "price" in tools:
        assert tools["price"].effect is Effect.ONCE
        assert (await tools["price"].run({"item": "tea"})).text == "2.5"


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("no_such_module", "No module named"),
        ("some_prices:none", "has no attribute"),
        ("none.py", "No such file"),
        ("broken.py", "SyntaxError"),
        ("raising.py", "ValueError: at import"),
        ("untyped.py", "ValueError"),
        ("empty.py", "no public function"),
    ],
)
def test_what_cannot_be_loaded_says_why(folder, reference, why):
    (folder / "broken.py").write_text("def (")
    (folder / "raising.py").write_text("raise ValueError('at import')")
    (folder / "untyped.py").write_text('def f(x):\n    """Do."""\n')
    (folder / "empty.py").write_text("x = 1")

    with pytest.raises(SettingsError) as raised:
        load_tools(reference, cwd=folder)

    assert why in raised.value.why
