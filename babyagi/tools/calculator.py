"""The calculator tool: computes arithmetic. An expression has only numbers, signs, brackets,
functions and constants, so it cannot run code. The size of each value is bounded before the value
is computed.

`^` is power. Whole and decimal numbers are exact: they are fractions with at most `MAX_BITS` bits
in numerator and denominator. Roots, logarithms and the like are floating-point numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.text import shorten
from babyagi.tools.base import Tool, takes_text

MAX_CHARS = 500
MAX_BITS = 8192  # of the numerator and of the denominator of every value
MAX_DIGITS = 100  # digits for `round`

Number = Fraction | float

_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "e": math.e, "tau": math.tau}
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CALL = re.compile(r"[^\W\d]\w*\s*\(")


class _UnreadError(Exception):
    """The expression cannot be read."""


def build_calculator() -> Tool:
    async def calculator(arguments: Mapping[str, Any]) -> Passage:
        return Passage(text=calculate(arguments["expression"]), origin="tool:calculator")

    return Tool(
        name="calculator",
        description="Compute arithmetic, such as (1 + 2) * 47^0.23 or comb(5, 2), with sqrt, log, "
        "sin, round, mod, factorial and the like.",
        parameters=takes_text(
            "expression",
            "Numbers, + - * / // ^, brackets, functions, pi and e; log is the natural logarithm.",
        ),
        effect=Effect.READ,
        run=calculator,
    )


def calculate(expression: str) -> str:
    """Compute the expression, and return its value as Python writes the number.

    Raises:
        ToolError: the expression is not arithmetic, has no value, or is too large to compute.
    """
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression is over {MAX_CHARS} characters; compute it in parts")
    shown = repr(shorten(expression, 100))
    try:
        return _render(_compute(_parse(expression)))
    except (_UnreadError, RecursionError):
        raise ToolError(
            f"the calculator cannot read {shown}: write numbers, + - * / // ^, brackets and "
            "functions, with a sign between values; 15% is 15/100, a remainder is mod(7, 4)"
        ) from None
    except (ValueError, MemoryError):
        raise ToolError(f"{shown} has no value that can be computed") from None
    except ZeroDivisionError:
        raise ToolError(f"{shown} divides by zero") from None
    except OverflowError:
        raise ToolError(f"{shown} is too large") from None


def _parse(expression: str) -> ast.expr:
    """Return the syntax tree of the expression. Thousands may be parted by commas where no comma
    can part the values of a function."""
    text = expression.translate(_SIGNS).strip(" =?")
    has_thousands = _THOUSANDS.search(text) is not None
    if has_thousands and _CALL.search(text):
        raise _UnreadError
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        raise _UnreadError from None


def _compute(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if value == math.inf:
                raise OverflowError
            return _bounded(Fraction(str(value)))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            signed = _compute(operand)
            return -signed if isinstance(sign, ast.USub) else signed
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_compute(left), _compute(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name.casefold(), [_compute(one) for one in args])
    raise _UnreadError


def _call(name: str, values: list[Number]) -> Number:
    if name not in _FUNCTIONS or not values:
        raise _UnreadError
    try:
        return _bounded(_FUNCTIONS[name](*values))
    except TypeError:  # another number of values
        raise _UnreadError from None


def _raise(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        n_bits = _n_bits(base) * abs(exponent.numerator)
        if abs(base.numerator) <= 1 and base.denominator == 1:
            n_bits = 1
        if n_bits <= MAX_BITS:
            return _bounded(base ** int(exponent))
        if base.denominator == 1 and exponent > 0:
            raise OverflowError
    return _bounded(float(base) ** float(exponent))


def _n_bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Any) -> Number:
    if isinstance(value, int):
        value = Fraction(value)
    if isinstance(value, Fraction):
        if _n_bits(value) > MAX_BITS:
            raise OverflowError
        return value
    if not isinstance(value, float):
        raise ValueError("no real number")
    if not math.isfinite(value):
        raise OverflowError
    return value


def _render(value: Number) -> str:
    is_whole = isinstance(value, Fraction) and value.denominator == 1
    return str(value) if is_whole else repr(float(value))


def _whole(value: Number) -> int:
    if value != int(value):
        raise ValueError("no whole number")
    return int(value)


def _count(how: Callable[[int, int], int]) -> Callable[[Number, Number], int]:
    """Return a version of `how` (`math.comb` or `math.perm`) that raises `OverflowError` instead of
    computing a value that is too large."""

    def count(n: Number, k: Number) -> int:
        of, taken = _whole(n), _whole(k)
        few = min(taken, of - taken) if how is math.comb else taken
        if few * of.bit_length() > 8 * MAX_BITS:
            raise OverflowError
        return how(of, taken)

    return count


def _round(value: Number, digits: Number = Fraction(0)) -> Number:
    if not -MAX_DIGITS <= digits <= MAX_DIGITS:
        raise ValueError("too many digits")
    return _bounded(round(value, _whole(digits)) if digits else round(value))


def _floating(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: function(*map(float, values))


def _of_whole(function: Callable[..., int]) -> Callable[..., int]:
    return lambda *values: function(*map(_whole, values))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _floating(getattr(math, name))
        for name in "sqrt cbrt exp log log2 log10 sin cos tan asin acos atan atan2 "
        "sinh cosh tanh degrees radians hypot".split()
    },
    "ln": _floating(math.log),
    **{name: getattr(math, name) for name in ("floor", "ceil", "trunc")},
    **{name: _of_whole(getattr(math, name)) for name in ("gcd", "lcm")},
    "abs": abs,
    "factorial": lambda n: _count(math.perm)(n, n),
    "round": _round,
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values),
    "mean": lambda *values: sum(values) / len(values),
    "comb": _count(math.comb),
    "perm": _count(math.perm),
    "pow": _raise,
    "mod": operator.mod,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _raise,
}
