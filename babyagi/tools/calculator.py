"""Arithmetic on numbers, bounded before it is computed: there are no names but functions and constants, no text, no attributes.

An expression is parsed as Python, so precedence is the usual one; `^` is read as power. Integers are exact up to `MAX_BITS`, all
else is floating point as Python has it.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, takes_text

MAX_CHARS = 500
MAX_BITS = 8192  # of an integer, and of everything that is computed on the way to one
MAX_FACTORIAL = 500
MAX_DIGITS = 100  # that `round` is asked for

Number = int | float

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(math, name)
        for name in "sqrt exp log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh degrees radians".split()
    },
    **{name: getattr(math, name) for name in "floor ceil trunc gcd hypot".split()},
    "abs": abs,
    "min": min,
    "max": max,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def build_calculator() -> Tool:
    async def calculator(arguments: Mapping[str, Any]) -> Passage:
        return Passage(text=calculate(arguments["expression"]), origin="tool:calculator")

    return Tool(
        name="calculator",
        description="Compute an arithmetic expression, such as (1 + 2) * 47^0.23, with sqrt, log, sin, round, min and the like.",
        parameters=takes_text("expression", "Numbers, + - * / // % ^, brackets, functions, pi and e."),
        effect=Effect.READ,
        run=calculator,
    )


def calculate(expression: str) -> str:
    """Return the value of the expression as Python writes the number.

    Raises:
        ToolError: it is no arithmetic, has no value, or is too large to be computed here.
    """
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression is over {MAX_CHARS} characters; compute it in parts")
    try:
        return repr(_evaluate(_parse(expression)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"{_show(expression)} is no arithmetic that has a value here") from None
    except ZeroDivisionError:
        raise ToolError(f"{_show(expression)} divides by zero") from None
    except OverflowError:
        raise ToolError(f"{_show(expression)} is too large") from None
    except TypeError:
        raise ToolError(f"{_show(expression)} gives a function the wrong number or kind of values") from None


def _parse(expression: str) -> ast.AST:
    with warnings.catch_warnings(action="ignore"):  # what a model wrote badly is no fault of this program
        return ast.parse(expression.translate(_SIGNS).strip(), mode="eval").body


def _evaluate(node: ast.AST) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _require_number(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _compute(type(sign), _evaluate(left), _evaluate(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_evaluate(arg) for arg in args])
    raise ToolError(f"only numbers, + - * / // % ^, brackets and {', '.join(sorted([*_FUNCTIONS, 'factorial', 'round']))} are computed")


def _compute(sign: type[ast.operator], left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        if sign is ast.Pow and right < 0:
            left = float(left)
        elif sign is ast.Pow:
            _require_bits(left.bit_length() * right if abs(left) > 1 else 1)
        elif sign is ast.Mult:
            _require_bits(left.bit_length() + right.bit_length())
    return _require_number(_OPERATORS[sign](left, right))


def _call(name: str, values: list[Number]) -> Number:
    if name == "factorial" and len(values) == 1:
        n = values[0]
        if not 0 <= n <= MAX_FACTORIAL or n != int(n):
            raise ToolError(f"factorial takes a whole number from 0 to {MAX_FACTORIAL}")
        return math.factorial(int(n))
    if name == "round" and len(values) in (1, 2):
        digits = int(values[1]) if len(values) == 2 else None
        if digits is not None and abs(digits) > MAX_DIGITS:
            raise ToolError(f"round takes at most {MAX_DIGITS} digits")
        return _require_number(round(values[0], digits))
    if name not in _FUNCTIONS:
        raise ToolError(f"there is no function {name[:40]!r}; there are: {', '.join(sorted([*_FUNCTIONS, 'factorial', 'round']))}")
    return _require_number(_FUNCTIONS[name](*values))


def _require_bits(n_bits: int) -> None:
    if n_bits > MAX_BITS:
        raise OverflowError


def _require_number(value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no real number")
    if isinstance(value, int):
        _require_bits(value.bit_length())
    elif not math.isfinite(value):
        raise OverflowError
    return value


def _show(expression: str) -> str:
    return repr(expression if len(expression) <= 100 else expression[:100] + "…")
