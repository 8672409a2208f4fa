"""The calculator tool: computes arithmetic as it is written in signs. An expression has only
numbers, signs, brackets, functions and constants, so it cannot run code. The size of each value is
bounded before the value is computed.

It understands expressions such as `2(3+4)`, `50% * 80`, `3!`, `√9`, `10²`, `1,234.50` and `3 × 4`;
`^` is power. Arithmetic in words, units and currencies is refused, and so is an ambiguous
expression, with a hint on what to write. Whole and decimal numbers are exact: they are fractions
with at most `MAX_BITS` bits in numerator and denominator. Roots, logarithms and the like are
floating-point numbers.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.text import shorten
from babyagi.tools.base import Tool, takes_text

MAX_CHARS = 500
MAX_BITS = 8192  # of the numerator and of the denominator of every value
MAX_FACTORIAL = 500
MAX_DIGITS = 100  # digits for `round`
MAX_EXPONENT = 2000  # of a number as it is written, such as 1e2000
MAX_DEPTH = 50  # of brackets

Number = Fraction | float

_CONSTANTS: Mapping[str, float] = {
    **dict.fromkeys(("pi", "π"), math.pi),
    "e": math.e,
    **dict.fromkeys(("tau", "τ"), math.tau),
}
_CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|"}

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("×·∙⋅•∗✕✖", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("−–—‒‐‑﹣", "-"),
        **dict.fromkeys("“”", '"'),
        "％": "%",
    }
)
_TOKEN = re.compile(
    r"""(?P<hex>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+)
    |(?P<number>(?:\d{1,3}(?P<mark>[,'’\s])\d{3}(?:(?P=mark)\d{3})*(?![\d])|\d{1,2}(?:,\d\d)+,\d{3}(?!\d)|\d+(?:_\d+)*)(?:\.\d+(?:_\d+)*|\.(?!\d))?
       |\.\d+)(?P<exponent>[eE][+-]?\d+)?
    |(?P<part>[¼-¾⅐-⅞↉])
    |(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+)
    |(?P<name>[^\W\d_]\w*)
    |(?P<sign>\*\*|//|[-+*/^%‰!(),\[\]{}|√∛∜=:°])
    |(?P<space>\s+)""",
    re.VERBOSE,
)


_KINDS = ("hex", "number", "part", "raised", "name", "sign", "space")
_NUMBERS = ("number", "hex", "part")


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
    try:
        return _render(_Reader(_tokenize(expression)).read())
    except (ValueError, RecursionError, MemoryError):
        raise ToolError(f"{_show(expression)} is not arithmetic that can be computed") from None
    except ZeroDivisionError:
        raise ToolError(f"{_show(expression)} divides by zero") from None
    except OverflowError:
        raise ToolError(f"{_show(expression)} is too large") from None


# -- words and signs
# --------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    """A word or sign of the expression. `is_apart_before` and `is_apart_after` say whether a space
    separates it from its neighbour on that side, or it has none."""

    kind: str
    text: str
    is_apart_before: bool
    is_apart_after: bool


def _tokenize(expression: str) -> Sequence[_Token]:
    text = "".join(_plain(char) for char in expression).translate(_SIGNS).strip(" =?")
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or not match.lastgroup:
            raise ToolError(
                f"the calculator does not know {_show(text[at])}; it computes numbers, + - * "
                "/ ^ %, brackets and functions"
            )
        kind = next(kind for kind in _KINDS if match[kind])
        if kind != "space":
            around = text[:at][-1:], text[match.end() :][:1]
            apart = [not char or char.isspace() for char in around]
            tokens.append(_Token(kind, match[0], apart[0], apart[1]))
        at = match.end()
    return tokens


def _plain(char: str) -> str:
    """Return the ASCII character for a digit of any script or a full-width form; any other
    character unchanged."""
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.digit(char))
    return chr(ord(char) - 0xFEE0) if "！" <= char <= "～" else char


# -- parsing
# --------------------------------------------------------------------------------------------------


class _Term(NamedTuple):
    """A value, and whether it was written as a percentage."""

    value: Number
    is_percent: bool = False


_HINTS = {
    "=": "leave out = and what follows it",
    ":": "write / for a division",
    "°": "write sin(radians(30)) for an angle in degrees",
    ",": "a comma separates thousands, or the values of a function",
}
_END = _Token("end", "", True, True)
_PRODUCT_SIGNS = ("*", "/", "//", "%")


class _Reader:
    """Parses the tokens of an expression, and computes its value at the same time. Each method
    reads one level of precedence, from sums down to numbers and brackets."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._at, self._depth, self._function = tokens, 0, 0, ""

    def read(self) -> Number:
        if not self._tokens:
            raise ToolError("the expression is empty; write one, such as 2 * (3 + 4)")
        term = self._sum()
        if self._next.kind != "end":
            self._refuse_next()
        return term.value

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    @property
    def _after(self) -> _Token:
        return self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else _END

    def _take(self, *texts: str) -> str:
        """Consume the next token if it is one of `texts` and return its text; otherwise return
        ''."""
        if self._next.text not in texts or self._next.kind == "end":
            return ""
        self._at += 1
        return self._tokens[self._at - 1].text

    def _sum(self) -> _Term:
        left = self._product()
        while sign := self._take("+", "-"):
            right = self._product()
            if right.is_percent and not left.is_percent and left.value != 1:
                raise ToolError(
                    f"a number {sign} a percentage can mean two things: write 80 * (1 "
                    f"{sign} 10%) or 80 {sign} (10%), with your numbers"
                )
            value = _compute(sign, left.value, right.value)
            left = _Term(value, left.is_percent and right.is_percent)
        return left

    def _product(self) -> _Term:
        left, last = self._signed(), ""
        while True:
            if sign := self._take_product_sign():
                right = self._signed()
                left, last = _Term(_compute(sign, left.value, right.value)), sign
            elif self._begins_operand():
                if last in ("/", "//", "%"):
                    raise ToolError(
                        "after a division, a product without * can mean two things: set "
                        "brackets, as in (6/2)*3 or 6/(2*3)"
                    )
                left, last = _Term(_compute("*", left.value, self._power().value)), "*"
            else:
                return left

    def _take_product_sign(self) -> str:
        if self._next.text == "%" and not self._is_modulo():
            return ""
        return self._take(*_PRODUCT_SIGNS)

    def _begins_operand(self) -> bool:
        """Return whether the next token begins a factor that has no sign before it, as in `2(3)`.
        Raises `ToolError` if two numbers are side by side."""
        token, before = self._next, self._tokens[self._at - 1].text
        if token.kind in _NUMBERS and before not in (")", "]", "}", "!"):
            both = f"{before} {token.text}"
            raise ToolError(
                f"{_show(both)}: two numbers side by side; put a sign between them, such as + or *"
            )
        is_opening = token.text in "([{√∛∜" and token.kind == "sign"
        return token.kind in (*_NUMBERS, "name") or is_opening

    def _signed(self) -> _Term:
        is_negative = False
        while sign := self._take("+", "-"):
            is_negative ^= sign == "-"
        term = self._power()
        return _Term(-term.value, term.is_percent) if is_negative else term

    def _power(self) -> _Term:
        base = self._postfixed()
        if self._next.kind == "raised":
            raised = unicodedata.normalize("NFKC", self._take(self._next.text)).replace("−", "-")
            return _Term(_compute("^", base.value, Fraction(raised)))
        if self._take("^", "**"):
            value = _compute("^", base.value, self._signed().value)
            if self._next.text in ("(", "[", "{"):
                raise ToolError(
                    "a bracket right after a power can mean two things: set brackets, as in "
                    "(2^3)*4 or 2^(3*4)"
                )
            return _Term(value)
        return base

    def _postfixed(self) -> _Term:
        value, is_percent = self._primary(), False
        while True:
            if self._take("!"):
                value = _factorial(value)
                if self._next.text == "!":
                    raise ToolError("!! can mean two things: set brackets, as in (3!)!")
            elif self._take("‰"):
                value = _compute("/", value, Fraction(1000))
            elif self._next.text == "%" and not self._is_modulo():
                self._at += 1
                value, is_percent = _compute("/", value, Fraction(100)), True
            else:
                return _Term(value, is_percent)

    def _is_modulo(self) -> bool:
        """Return whether the next token, a `%`, means modulo rather than percent. Raises
        `ToolError` if it can mean either."""
        token, after = self._next, self._after
        is_attached = not token.is_apart_before
        if after.text in ("+", "-"):
            if is_attached and not token.is_apart_after:
                raise ToolError(
                    "% can be a percentage or a remainder here: write (7%) - 4 or mod(7, -4), "
                    "with your numbers"
                )
            return not is_attached
        is_named = after.text.casefold() in {**_FUNCTIONS, **_CONSTANTS}
        is_operand = is_named or after.text in {*_CLOSING, *_ROOTS}
        if not is_operand and after.kind not in _NUMBERS:
            return False
        if is_attached and token.is_apart_after:
            raise ToolError(
                "% can be a percentage or a remainder here: write 50% * 80 or mod(50, 80), "
                "with your numbers"
            )
        return True

    def _primary(self) -> Number:
        token = self._next
        self._at += 1
        match token.kind:
            case "hex":
                return _bounded(Fraction(int(token.text, 0)))
            case "number":
                return self._number(token.text)
            case "part":
                return _vulgar(token.text)
            case "name":
                return self._named(token.text)
            case "sign" if token.text in _CLOSING:
                return self._bracketed(token.text)
            case "sign" if token.text in _ROOTS:
                return _bounded(_ROOTS[token.text](self._postfixed().value))
        self._at -= 1
        return self._refuse_next()

    def _number(self, text: str) -> Number:
        value = _parse(text)
        if "," in text and self._function and _FUNCTIONS[self._function].most != 1:
            apart, joined = text.replace(",", ", "), text.replace(",", "")
            raise ToolError(
                f"{text} within {self._function}(…) can be one number or several: write "
                f"{apart} or {joined}"
            )
        if self._next.text == "," and not self._function:
            decimals = self._after.text
            raise ToolError(
                f"{_show(f'{text},{decimals}')}: write decimals with a point, "
                f"{text.replace('.', '')}.{decimals}; a comma separates thousands"
            )
        return value + _vulgar(self._take(self._next.text)) if self._next.kind == "part" else value

    def _bracketed(self, opening: str) -> Number:
        with self._inside(""):
            value = self._sum().value
            self._close(_CLOSING[opening])
        return max(value, -value) if opening == "|" else value

    def _named(self, text: str) -> Number:
        name = text if text in _CONSTANTS or text in _FUNCTIONS else text.casefold()
        if self._next.text == "(" and name in _FUNCTIONS:
            return _call(name, self._arguments(name))
        if name in _CONSTANTS:
            if self._next.text == "(":
                raise ToolError(f"{text} is not a function; write {text} * (…)")
            return _CONSTANTS[name]
        if name in _FUNCTIONS:
            raise ToolError(
                f"{text} is a function; write {text}(…) with brackets around its values"
            )
        raise ToolError(
            f"the calculator does not know {_show(text)}; write signs, as in 15% * 80, without "
            f"words and units. There are: {', '.join(sorted(_FUNCTIONS))}, pi, e"
        )

    def _arguments(self, name: str) -> list[Number]:
        self._at += 1
        with self._inside(name):
            values = [self._sum().value]
            while self._take(","):
                values.append(self._sum().value)
            self._close(")")
        return values

    @contextmanager
    def _inside(self, function: str) -> Iterator[None]:
        """Return the context for parsing what is in brackets: the arguments of `function`, or a
        single expression if it is ''."""
        if self._depth == MAX_DEPTH:
            raise ToolError(f"the brackets are more than {MAX_DEPTH} deep; compute it in parts")
        outer, self._function, self._depth = self._function, function, self._depth + 1
        yield
        self._function, self._depth = outer, self._depth - 1

    def _close(self, closing: str) -> None:
        if not self._take(closing):
            self._refuse_next(missing=closing)

    def _refuse_next(self, *, missing: str = "") -> NoReturn:
        text = self._next.text
        if self._next.kind == "end":
            raise ToolError(
                f"the expression ends too early{f'; {missing} is missing' if missing else ''}"
            )
        expected = f"{missing} is missing" if missing else "a number or a bracket is expected there"
        hint = _HINTS.get(text, expected)
        raise ToolError(f"{_show(text)} is not allowed there; {hint}")


# -- computing
# --------------------------------------------------------------------------------------------------


def _parse(text: str) -> Number:
    digits, _, exponent = re.sub(r"[,'’_\s]", "", text).lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise OverflowError
    return _bounded(Fraction(digits.removesuffix(".")) * Fraction(10) ** int(exponent or 0))


def _vulgar(text: str) -> Fraction:
    return Fraction(unicodedata.numeric(text)).limit_denominator(100)


def _compute(sign: str, left: Number, right: Number) -> Number:
    if sign in ("^", "**"):
        return _raise(left, right)
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
        raise ToolError(f"{_render(value)[:40]} is not a whole number, which is required")
    return int(value)


def _factorial(value: Number) -> Number:
    if not 0 <= value <= MAX_FACTORIAL or value != int(value):
        raise ToolError(f"factorial takes a whole number from 0 to {MAX_FACTORIAL}")
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
        raise ToolError(f"round takes at most {MAX_DIGITS} digits")
    return _bounded(round(value, _whole(digits)) if digits else round(value))


def _cube_root(value: Number) -> float:
    root = math.cbrt(value)
    return float(round(root)) if math.isclose(round(root), root, rel_tol=1e-15) else root


def _floating(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: function(*map(float, values))


def _of_whole(function: Callable[..., int]) -> Callable[..., int]:
    return lambda *values: function(*map(_whole, values))


class _Function(NamedTuple):
    """A function of the calculator, which takes from `least` to `most` values."""

    compute: Callable[..., Any]
    least: int = 1
    most: int = 1


_MANY = MAX_CHARS
_FUNCTIONS: Mapping[str, _Function] = {
    **{
        name: _Function(_floating(getattr(math, name)))
        for name in "sqrt exp log2 log10 sin cos tan asin acos atan "
        "sinh cosh tanh degrees radians".split()
    },
    **{
        f"arc{name}": _Function(_floating(getattr(math, f"a{name}")))
        for name in ("sin", "cos", "tan")
    },
    "log": _Function(_floating(math.log), most=2),
    "ln": _Function(_floating(math.log)),
    "atan2": _Function(_floating(math.atan2), 2, 2),
    "hypot": _Function(_floating(math.hypot), most=_MANY),
    **{name: _Function(getattr(math, name)) for name in ("floor", "ceil", "trunc")},
    "abs": _Function(abs),
    "cbrt": _Function(_cube_root),
    "factorial": _Function(_factorial),
    "round": _Function(_round, most=2),
    "min": _Function(min, 2, _MANY),
    "max": _Function(max, 2, _MANY),
    "sum": _Function(lambda *values: sum(values), most=_MANY),
    **{
        name: _Function(lambda *values: sum(values) / len(values), most=_MANY)
        for name in ("mean", "avg", "average")
    },
    **{name: _Function(_of_whole(getattr(math, name)), most=_MANY) for name in ("gcd", "lcm")},
    **{name: _Function(_count(math.comb), 2, 2) for name in ("comb", "ncr", "c")},
    **{name: _Function(_count(math.perm), 2, 2) for name in ("perm", "npr", "p")},
    "pow": _Function(_raise, 2, 2),
    "mod": _Function(operator.mod, 2, 2),
}
_ROOTS: Mapping[str, Callable[[Number], float]] = {
    "√": math.sqrt,
    "∛": _cube_root,
    "∜": lambda value: math.sqrt(math.sqrt(value)),
}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _call(name: str, values: Sequence[Number]) -> Number:
    function = _FUNCTIONS[name]
    if not function.least <= len(values) <= function.most:
        wanted = str(function.least)
        if function.most > function.least:
            wanted += " or more" if function.most == _MANY else f" to {function.most}"
        raise ToolError(
            f"{name} takes {wanted} value{'' if wanted == '1' else 's'}, not {len(values)}"
        )
    return _bounded(function.compute(*values))


def _show(expression: str) -> str:
    return repr(shorten(expression, 100))
