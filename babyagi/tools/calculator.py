"""The calculator tool: computes arithmetic. An expression has only numbers, signs, brackets,
functions and constants, so it cannot run code. The size of each value is bounded before the value
is computed.

`^` is power, and a `%` that no value follows is a percentage. An expression that can mean two
things is refused. Whole and decimal numbers are exact: they are fractions with at most `MAX_BITS`
bits in numerator and denominator. Roots, logarithms and the like are floating-point numbers.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.text import shorten
from babyagi.tools.base import Tool, takes_text

MAX_CHARS = 500
MAX_BITS = 8192  # of the numerator and of the denominator of every value
MAX_FACTORIAL = 500
MAX_DIGITS = 100  # digits for `round`
MAX_EXPONENT = 2000  # of a number as it is written, such as 1e2000

Number = Fraction | float

_CONSTANTS: Mapping[str, float] = {
    **dict.fromkeys(("pi", "π"), math.pi),
    "e": math.e,
    **dict.fromkeys(("tau", "τ"), math.tau),
}
_SIGNS = str.maketrans(
    {
        **{chr(n): chr(n - 0xFEE0) for n in range(0xFF01, 0xFF5F)},  # full-width forms
        **dict.fromkeys("×·∙⋅•∗✕✖", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("−–—‒‐‑﹣", "-"),
    }
)
_TOKEN = re.compile(
    r"""(?P<hex>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+)
    |(?P<number>(?:\d{1,3}(?P<mark>[,'’\s])\d{3}(?:(?P=mark)\d{3})*(?![\d])|\d{1,2}(?:,\d\d)+,\d{3}(?!\d)|\d+(?:_\d+)*)(?:\.\d+(?:_\d+)*|\.(?!\d))?
       |\.\d+)(?:[eE][+-]?\d+)?
    |(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+)
    |(?P<name>[^\W\d_]\w*)
    |(?P<sign>\*\*|//|[-+*/^%!(),√])
    |(?P<space>\s+)""",
    re.VERBOSE,
)
_KINDS = ("hex", "number", "raised", "name", "sign", "space")


class _UnreadError(Exception):
    """The expression cannot be read."""


def build_calculator() -> Tool:
    async def calculator(arguments: Mapping[str, Any]) -> Passage:
        return Passage(text=calculate(arguments["expression"]), origin="tool:calculator")

    return Tool(
        name="calculator",
        description="Compute arithmetic, such as (1 + 2) * 47^0.23, 15% * 80 or comb(5, 2), with "
        "sqrt, log, sin, round and the like.",
        parameters=takes_text(
            "expression",
            "Numbers, + - * / // ^ %, !, brackets, functions, pi and e; log is the natural "
            "logarithm.",
        ),
        effect=Effect.READ,
        run=calculator,
    )


def calculate(expression: str) -> str:
    """Compute the expression, and return its value as Python writes the number.

    Raises:
        ToolError: the expression is not arithmetic, has no value, is ambiguous, or is too large to
            compute.
    """
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression is over {MAX_CHARS} characters; compute it in parts")
    shown = repr(shorten(expression, 100))
    try:
        return _render(_Reader(_tokenize(expression)).read())
    except (_UnreadError, RecursionError):
        raise ToolError(
            f"the calculator cannot read {shown}: write numbers, + - * / // ^ %, brackets and "
            "functions, with a sign between values, and brackets where it can mean two things"
        ) from None
    except (ValueError, MemoryError):
        raise ToolError(f"{shown} has no value that can be computed") from None
    except ZeroDivisionError:
        raise ToolError(f"{shown} divides by zero") from None
    except OverflowError:
        raise ToolError(f"{shown} is too large") from None


# -- parsing
# --------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


_END = _Token("end", "", -1, -1)


def _tokenize(expression: str) -> Sequence[_Token]:
    text = expression.translate(_SIGNS).strip(" =?")
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _UnreadError
        kind = next(kind for kind in _KINDS if match[kind])
        if kind != "space":
            tokens.append(_Token(kind, match[0], at, match.end()))
        at = match.end()
    return tokens


class _Reader:
    """Parses the tokens of an expression, and computes its value at the same time. Each method
    reads one level of precedence, from sums down to numbers and brackets."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._at = tokens, 0
        self._is_in_call = False  # then a comma separates values, and no thousands

    def read(self) -> Number:
        value = self._sum()
        if self._next.kind != "end":
            raise _UnreadError
        return value

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self, *texts: str) -> str:
        """Consume the next token if it is one of `texts` and return its text; otherwise return
        ''."""
        text = self._next.text
        if text not in texts:
            return ""
        self._at += 1
        return text

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise _UnreadError

    def _sum(self) -> Number:
        start = self._at
        value = self._product()
        takes_percent = value == 1 or self._ends_percentage(start)
        while sign := self._take("+", "-"):
            start = self._at
            right = self._product()
            if self._ends_percentage(start) and not takes_percent:
                raise _UnreadError  # 80 + 10% can mean 88 or 80.1
            takes_percent = takes_percent and self._ends_percentage(start)
            value = _compute(sign, value, right)
        return value

    def _ends_percentage(self, start: int) -> bool:
        """Return whether what was read from token `start` on is a percentage such as `-10%`."""
        return self._at - start <= 3 and self._tokens[self._at - 1].text == "%"

    def _product(self) -> Number:
        value = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            value = _compute(sign, value, self._signed())
        return value

    def _signed(self) -> Number:
        is_negative = False
        while sign := self._take("+", "-"):
            is_negative ^= sign == "-"
        value = self._power()
        return -value if is_negative else value

    def _power(self) -> Number:
        base = self._postfixed()
        if self._next.kind == "raised":
            raised = unicodedata.normalize("NFKC", self._take(self._next.text)).replace("−", "-")
            return _raise(base, Fraction(raised))
        return _raise(base, self._signed()) if self._take("^", "**") else base

    def _postfixed(self) -> Number:
        value, last = self._primary(), ""
        while True:
            if last != "!" and self._take("!"):
                value, last = _factorial(value), "!"
            elif self._next.text == "%" and self._is_percent():
                self._at += 1
                value, last = _compute("/", value, Fraction(100)), "%"
            else:
                return value

    def _is_percent(self) -> bool:
        """Return whether the next token, a `%`, means percent and not modulo: no value follows, or
        it touches its number only, as in `50% - 4`."""
        before, token, after = (*self._tokens[self._at - 1 : self._at + 2], _END)[:3]
        is_near, is_far = before.end == token.start, after.start != token.end
        if after.text in ("+", "-"):
            if is_near and not is_far:
                raise _UnreadError
            return is_near
        is_value = after.kind in ("hex", "number", "name") or after.text in ("(", "√")
        return not is_value or (is_near and is_far)

    def _primary(self) -> Number:
        token = self._next
        self._at += 1
        match token.kind, token.text:
            case "hex", text:
                return _bounded(Fraction(int(text, 0)))
            case "number", text if not (self._is_in_call and "," in text):
                return _parse(text)
            case "name", text:
                return self._named(text if text in _CONSTANTS else text.casefold())
            case "sign", "(":
                return self._inside("", is_in_call=False)[0]
            case "sign", "√":
                return _bounded(math.sqrt(self._postfixed()))
        raise _UnreadError

    def _named(self, name: str) -> Number:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name not in _FUNCTIONS:
            raise _UnreadError
        self._require("(")
        values = self._inside(",", is_in_call=True)
        try:
            return _bounded(_FUNCTIONS[name](*values))
        except TypeError:  # another number of values
            raise _UnreadError from None

    def _inside(self, separator: str, *, is_in_call: bool) -> list[Number]:
        """Return the values up to the closing bracket."""
        outer, self._is_in_call = self._is_in_call, is_in_call
        values = [self._sum()]
        while separator and self._take(separator):
            values.append(self._sum())
        self._require(")")
        self._is_in_call = outer
        return values


# -- computing
# --------------------------------------------------------------------------------------------------


def _parse(text: str) -> Number:
    digits, _, exponent = re.sub(r"[,'’_\s]", "", text).lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise OverflowError
    return _bounded(Fraction(digits.removesuffix(".")) * Fraction(10) ** int(exponent or 0))


def _compute(sign: str, left: Number, right: Number) -> Number:
    return _bounded(_OPERATORS[sign](left, right))


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


def _factorial(value: Number) -> Number:
    if not 0 <= value <= MAX_FACTORIAL or value != int(value):
        raise ValueError("no factorial that is computed")
    return Fraction(math.factorial(int(value)))


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


def _cube_root(value: Number) -> float:
    root = math.cbrt(value)
    return float(round(root)) if math.isclose(round(root), root, rel_tol=1e-15) else root


def _floating(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: function(*map(float, values))


def _of_whole(function: Callable[..., int]) -> Callable[..., int]:
    return lambda *values: function(*map(_whole, values))


def _mean(*values: Number) -> Number:
    return sum(values) / len(values)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _floating(getattr(math, name))
        for name in "sqrt exp log log2 log10 sin cos tan asin acos atan atan2 "
        "sinh cosh tanh degrees radians hypot".split()
    },
    **{f"arc{name}": _floating(getattr(math, f"a{name}")) for name in ("sin", "cos", "tan")},
    "ln": _floating(math.log),
    **{name: getattr(math, name) for name in ("floor", "ceil", "trunc")},
    "abs": abs,
    "cbrt": _cube_root,
    "factorial": _factorial,
    "round": _round,
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values),
    **dict.fromkeys(("mean", "avg", "average"), _mean),
    **{name: _of_whole(getattr(math, name)) for name in ("gcd", "lcm")},
    **dict.fromkeys(("comb", "ncr", "c"), _count(math.comb)),
    **dict.fromkeys(("perm", "npr", "p"), _count(math.perm)),
    "pow": _raise,
    "mod": operator.mod,
}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
