"""Finds what the program compares texts with: the words and patterns that are written in it,
wherever they stand and also where they are made when it runs, and the files of its package.

A *site* is a constant of a module or a class, a function with words of its own, or a file that is
no Python. Its words are

* the strings of a constant that is a collection, with the keys of a dict and what its values
  collect, whether it is used or not;
* a string that is compared, in a function or as a constant: with `==`, `in`, `<=`, `&` and the
  like, with a method such as `startswith`, as a `case`, as a key that is read, in a loop, or by a
  function of this program that it is given to;
* the letters that a pattern takes literally.

A word has two letters, or one letter of a script without capitals; a phrase counts each of its
words, and a site each word once. A pattern counts where it is compiled or used; one that is a
single class of characters (`\\d+`) asks what `str.isdigit` asks, and does not count. Constants are
read from the imported modules, so what is made of parts counts whole.

The register beside this file says of each site what it is compared with; the longest of its keys
that begins the site's name holds. Its tables: `form`, compared with the text of a model, a page, a
file or a result, which counts; `grammar`, the names of a format that others have written down
(HTML, Python), which are listed with their number; `other`, compared with no such text.

Not found: what a library compares, and what is compared letter by letter.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

REGISTER = Path(__file__).with_suffix(".toml")
FORM, GRAMMAR, OTHER = "form", "grammar", "other"  # the register's tables
UNNAMED = "NOT IN THE REGISTER"
MAX_WORDS = 400  # of what falls under form
MAX_PATTERNS = 60
MAX_HIDDEN_WORDS = 40  # of a site of Python that only an entry for its file or room names

_COMPARING = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition split rsplit find rfind "
    "index rindex count get pop replace isdisjoint intersection difference issubset issuperset "
    "discard remove".split()
)
_COMPILING = frozenset(
    f"re.{name}"
    for name in "compile search match fullmatch sub subn split findall finditer".split()
)
_COLLECTING = frozenset("frozenset set tuple list sorted reversed dict.fromkeys".split())
_OF_THE_MACHINE = frozenset({"__name__", "sys.platform", "os.name"})
_ESCAPE = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|N\{[^}]*\}|.)"
_CLASS = rf"\[\^?\]?(?:{_ESCAPE}|[^\]\\])*+\]"
_NOT_LITERAL = re.compile(
    rf"{_CLASS}|{_ESCAPE}|\(\?(?:P<\w+>|P=\w+\)|<?[=!]|[a-zA-Z-]*:|[a-zA-Z]+\))|\{{\d*,?\d*\}}",
    re.DOTALL,
)
_ONE_CLASS = re.compile(rf"\(?(?:{_CLASS}|\\[wWsSdD])(?:[+*?]|\{{\d*,?\d*\}})*\+?\)?", re.DOTALL)
_MAX_ROUNDS = 4  # of looking which functions compare what they are given


@dataclass(slots=True)
class Site:
    """The words and patterns of a constant, a function or a file, in the order found. `path` is
    relative to the package, `scope` is empty for a file."""

    path: str
    scope: str
    line: int
    words: dict[str, None] = field(default_factory=dict)
    patterns: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.path}:{self.scope}" if self.scope else self.path

    def add_text(self, text: str) -> None:
        self.words |= dict.fromkeys(filter(_is_word, text.split()))

    def add_pattern(self, source: str) -> None:
        if not _ONE_CLASS.fullmatch(source):
            self.patterns[source] = None
            self.words |= dict.fromkeys(words_of_pattern(source))


def words_of_pattern(source: str) -> list[str]:
    """Return the runs of letters that a pattern takes literally."""
    return [run for run in re.findall(r"[^\W\d]+", _NOT_LITERAL.sub(" ", source)) if _is_word(run)]


def _is_word(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return len(letters) > 1 or any(unicodedata.category(char) == "Lo" for char in letters)


# -- judging
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A site with the table of the register that it falls under, and why."""

    site: Site
    table: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What each site is compared with, and what is wrong between register and code. What the
    register does not name counts as form until it does."""

    judged: Sequence[Judged]
    faults: Sequence[str]

    def of(self, table: str) -> list[Judged]:
        """Return what falls under a table, in the order of files and lines."""
        return [one for one in self.judged if one.table == table]


def totals(judged: Sequence[Judged]) -> tuple[int, int]:
    """Return how many words and patterns the sites have; a word of several sites of a file counts
    once."""
    words = {(one.site.path, word.casefold()) for one in judged for word in one.site.words}
    return len(words), sum(len(one.site.patterns) for one in judged)


def judge(sites: Sequence[Site], register: Mapping[str, Mapping[str, str]]) -> Verdict:
    """Judge the sites by the register, whose tables give the reason by the beginning of a name."""
    entries = {key: (table, why) for table, keys in register.items() for key, why in keys.items()}
    judged, faults, used = list[Judged](), list[str](), set[str]()
    for site in sites:
        key = max((one for one in entries if _begins(one, site)), key=len, default="")
        used.add(key)
        if not key:
            faults.append(_say_missing(site))
            judged.append(Judged(site=site, table=FORM, why=UNNAMED))
            continue
        table, why = entries[key]
        judged.append(Judged(site=site, table=table, why=why))
        is_hidden = site.scope and key != site.name and len(site.words) > MAX_HIDDEN_WORDS
        if table != FORM and is_hidden:
            faults.append(f"{_say_missing(site)} (the entry for {key} is too wide for a long list)")
    faults += [f"{key}: the register names what is not there" for key in entries if key not in used]
    return Verdict(judged=judged, faults=faults)


def _begins(key: str, site: Site) -> bool:
    if key == site.path or key == site.name:
        return True
    return site.name.startswith(key) and (key.endswith("/") or site.name[len(key)] in ".:")


def _say_missing(site: Site) -> str:
    held = [*site.words][:8] + [*site.patterns][:2]
    return (
        f"babyagi/{site.path}:{site.line}: {site.scope or 'this file'} compares something with "
        f"{', '.join(held)}. Ask a model in a typed field, or look it up byte for byte; if it is "
        f'form, say so in support/compared.toml: "{site.name}" = "why"'
    )


def read_register() -> dict[str, dict[str, str]]:
    """Return the register: by table the reasons by the beginnings of names."""
    return tomllib.loads(REGISTER.read_text("utf-8"))


# -- finding
# --------------------------------------------------------------------------------------------------


def find_sites(package: Path) -> list[Site]:
    """Return the sites of an importable package in the order of files and lines."""
    modules = [_Module(path, package) for path in sorted(package.rglob("*.py"))]
    sites = _Sites(modules)
    for _ in range(_MAX_ROUNDS):
        n_before = sites.n_compared_parameters
        for module in modules:
            _Finder(module, sites).visit(module.tree)
        if sites.n_compared_parameters == n_before:
            break
    found = [site for site in sites.by_name.values() if site.words or site.patterns]
    found += [
        _read_data(path, package)
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".typed")
    ]
    return sorted(found, key=lambda site: (site.path, site.line))


def _read_data(path: Path, package: Path) -> Site:
    site = Site(path.relative_to(package).as_posix(), "", 1)
    site.add_text(path.read_text("utf-8", "replace"))
    return site


class _Module:
    """A module's source, what it is when imported, and where its imported names come from."""

    def __init__(self, path: Path, package: Path) -> None:
        self.path = path.relative_to(package).as_posix()
        parts = path.relative_to(package.parent).with_suffix("").parts
        self.dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text("utf-8")
        self.tree = ast.parse(source)
        self.groups = frozenset(re.findall(r"\(\?P<(\w+)>", source))  # names in patterns
        is_program = path.name == "__main__.py"  # it runs when it is imported
        self.imported = ModuleType("") if is_program else importlib.import_module(self.dotted)
        self.origins = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def origin(self, name: str) -> tuple[str, str]:
        """Return the module and the name there of what this module calls `name`."""
        head, _, rest = name.partition(".")
        module, original = self.origins.get(head, (self.dotted, head))
        return (f"{module}.{original}", rest) if rest else (module, original)


class _Sites:
    """The sites, the constants of all modules, and which parameters of functions are compared, by
    module and name of the function."""

    def __init__(self, modules: Sequence[_Module]) -> None:
        self.by_name: dict[str, Site] = {}
        self.compared_parameters: dict[tuple[str, str], set[str]] = {}
        self._constants: dict[tuple[str, str], tuple[Site, Any]] = {}
        for module in modules:
            for scope, owner, statement in _constant_statements(module):
                for target in _targets(statement):
                    value = vars(owner).get(target)
                    site = self.at(module.path, scope + target, statement.lineno)
                    self._constants[module.dotted, scope + target] = site, value
                    _add_constant(site, value)

    @property
    def n_compared_parameters(self) -> int:
        return sum(map(len, self.compared_parameters.values()))

    def at(self, path: str, scope: str, line: int) -> Site:
        site = Site(path, scope, line)
        return self.by_name.setdefault(site.name, site)

    def constant(self, module: _Module, name: str) -> tuple[Site, Any] | None:
        """Return the site and the value of a constant by the name that a module has for it."""
        own = self._constants.get((module.dotted, name))
        return own or self._constants.get(module.origin(name))


def _constant_statements(module: _Module) -> Iterator[tuple[str, Any, ast.stmt]]:
    for statement in module.tree.body:
        yield "", module.imported, statement
        if isinstance(statement, ast.ClassDef):
            owner = getattr(module.imported, statement.name)
            for inner in () if issubclass(owner, Enum) else statement.body:
                yield f"{statement.name}.", owner, inner


def _targets(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [node.id for node in names if node.id != "__all__"]


def _add_constant(site: Site, value: object) -> None:
    for source in _patterns_in(value):
        site.add_pattern(source)
    if not isinstance(value, str | bytes):
        for text in _texts_in(value):
            site.add_text(text)


def _patterns_in(value: object) -> Iterator[str]:
    if isinstance(value, re.Pattern):
        yield value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _patterns_in(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _patterns_in(inner)


def _texts_in(value: object) -> Iterator[str]:
    """Yield the strings that a value collects; of a mapping the keys, and what values collect."""
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts_in(key)
            if not isinstance(inner, str | bytes):
                yield from _texts_in(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _texts_in(inner)


class _Finder(ast.NodeVisitor):
    """Adds what the functions of a module compare with, and notes which of their parameters are
    compared."""

    def __init__(self, module: _Module, sites: _Sites) -> None:
        self._module, self._sites = module, sites
        self._scopes: list[str] = []
        self._bound: list[dict[str, ast.expr]] = []
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []

    # -- where it stands

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scopes.append(node.name)
        self.generic_visit(node)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scopes.append(node.name)
        self._functions.append(node)
        self._bound.append(dict(_bound_in(node)))
        self.generic_visit(node)
        self._bound.pop()
        self._functions.pop()
        self._scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def _here(self, node: ast.AST) -> Site:
        return self._sites.at(self._module.path, ".".join(self._scopes), getattr(node, "lineno", 1))

    # -- what compares

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        is_identity = all(isinstance(one, ast.Is | ast.IsNot) for one in node.ops)
        if not is_identity and _OF_THE_MACHINE.isdisjoint(map(ast.unparse, operands)):
            for operand in operands:
                self._compare(operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.BitAnd | ast.Sub) and self._functions:
            self._compare(node.left)
            self._compare(node.right)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if ast.unparse(node.func) in _COMPILING:
            if node.args and self._functions:
                self._compile(node.args[0])
        elif method in _COMPARING and not self._is_split(node):
            for argument in node.args[:1]:
                self._compare(argument)
        else:
            self._give(node)
        self.generic_visit(node)

    @staticmethod
    def _is_split(call: ast.Call) -> bool:
        """Return whether a written string is split, and nothing compared with it."""
        return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)

    def _give(self, call: ast.Call) -> None:
        """Compare the arguments that the called function compares."""
        name = ast.unparse(call.func).removeprefix("self.").removeprefix("cls.")
        compared = self._sites.compared_parameters.get(self._module.origin(name), ())
        for at, argument in enumerate(call.args):
            if str(at) in compared or "*" in compared:
                self._compare(argument)
        for keyword in call.keywords:
            if keyword.arg in compared:
                self._compare(keyword.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        is_read = isinstance(node.ctx, ast.Load) and self._functions
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if is_read and key is not None and key not in self._module.groups:
            self._compare(node.slice)
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._compare(node.value)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        for key in node.keys:
            self._compare(key)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.iter)
        self.generic_visit(node)

    def _loop(self, over: ast.expr) -> None:
        if self._functions and not isinstance(over, ast.Name):
            self._compare(over)

    def _compare(self, operand: ast.expr) -> None:
        for site, text in self._texts(operand):
            site.add_text(text)

    def _compile(self, source: ast.expr) -> None:
        """Add each string of a name that is looped over or constant; else one pattern."""
        name = ast.unparse(source)
        bound = self._bound[-1].get(name)
        found = list(self._texts(source))
        is_many = isinstance(source, ast.Name | ast.Attribute) and not isinstance(
            bound, ast.JoinedStr | ast.Call
        )
        if is_many:
            for site, text in found:
                site.add_pattern(text)
        elif found:
            self._here(source).add_pattern("".join(text for _, text in found))
        else:
            self._here(source).patterns[name] = None

    # -- what an expression holds

    def _texts(self, node: ast.expr) -> Iterator[tuple[Site, str]]:
        """Yield the strings that an expression is or collects, each with the site that it stands
        in: the function, or the constant that is named."""
        match node:
            case ast.Constant(value=str(text)):
                yield self._here(node), text
            case ast.Constant(value=bytes(data)):
                yield self._here(node), data.decode("latin-1")
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                yield from self._texts_of_all(parts)
            case ast.JoinedStr(values=parts):
                yield from self._texts_of_all(parts)
            case ast.Dict(keys=keys):
                yield from self._texts_of_all([key for key in keys if key is not None])
            case ast.FormattedValue(value=inner) | ast.Starred(value=inner):
                yield from self._texts(inner)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                yield from self._texts_of_all([left, right])
            case ast.Call(func=ast.Attribute(value=inner, attr="split" | "keys" | "items")):
                yield from self._texts(inner)
            case ast.Call(func=ast.Attribute(attr="join"), args=[inner]):
                yield from self._texts(inner)
            case ast.Call(func=function, args=[inner, *_]) if ast.unparse(function) in _COLLECTING:
                yield from self._texts(inner)
            case ast.Name() | ast.Attribute():
                yield from self._texts_of_name(ast.unparse(node))

    def _texts_of_all(self, nodes: Sequence[ast.expr]) -> Iterator[tuple[Site, str]]:
        for node in nodes:
            yield from self._texts(node)

    def _texts_of_name(self, name: str) -> Iterator[tuple[Site, str]]:
        for bound, function in zip(reversed(self._bound), reversed(self._functions), strict=True):
            if name in bound:
                inner = bound.pop(name)  # a name may be made of itself
                yield from self._texts(inner)
                bound[name] = inner
                return
            if place := _place_of(name, function):
                key = self._module.dotted, function.name
                self._sites.compared_parameters.setdefault(key, set()).update(place)
                return
        if self._scopes and name.startswith("self."):
            name = f"{self._scopes[0]}.{name.removeprefix('self.')}"
        if found := self._sites.constant(self._module, name):
            site, value = found
            for text in _texts_in(value):
                yield site, text


def _place_of(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return how a call may give the parameter `name` of a function: by name, by place, or as one
    of many; [] for what is no parameter."""
    given = function.args
    if given.vararg and given.vararg.arg == name:
        return ["*"]
    if any(one.arg == name for one in given.kwonlyargs):
        return [name]
    names = [one.arg for one in (*given.posonlyargs, *given.args) if one.arg not in ("self", "cls")]
    return [name, str(names.index(name))] if name in names else []


@cache  # each function is looked at once a round
def _bound_in(function: ast.AST) -> dict[str, ast.expr]:
    """Return what is assigned to, or looped over for, each plain name of a function."""
    bound: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            bound[node.targets[0].id] = node.value
        elif isinstance(node, ast.NamedExpr):
            bound[node.target.id] = node.value
        elif isinstance(node, ast.For | ast.comprehension):
            names = [one for one in ast.walk(node.target) if isinstance(one, ast.Name)]
            bound |= {one.id: node.iter for one in names}
    return bound
