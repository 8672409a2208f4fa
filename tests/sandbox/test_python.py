"""Code from a model computes and does nothing else; each of its ends is one answer or one line."""

import pytest

from babyagi.errors import ToolError
from babyagi.sandbox.python import run_python


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("final_result = 47 ** 0.23", "2.4242784855673896"),
        ("from datetime import date\nfinal_result = (date(2026, 3, 1) - date(2026, 2, 1)).days", "28"),
        ("from datetime import datetime\nfinal_result = datetime.strptime('2 Jan 2026', '%d %b %Y').date()", "2026-01-02"),
        ("import statistics as s\nfinal_result = s.median([3, 1, 2])", "2"),
        ("from decimal import Decimal\nfinal_result = Decimal('0.1') + Decimal('0.2')", "0.3"),
        ("import re\nfinal_result = re.findall(r'\\d+', 'a1b22')", "['1', '22']"),
        ("def f(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\nfinal_result = f(1000)", "499500"),
        ("final_result = sum(range(10**6))", "499999500000"),
        ("final_result = sorted('bca')", "['a', 'b', 'c']"),
        ("final_result = len(str(2 ** 20000))", "6021"),
        ("final_result = '\\N{BULLET}'", "•"),
    ],
)
async def test_an_ordinary_program_gives_its_answer(code, expected):
    assert await run_python(code) == expected


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\nfinal_result = y", "NameError: name 'y' is not defined (line 2)"),
        ("print(3)", "the code assigned nothing to final_result; what it prints is not read"),
        ("while True: pass", "the code took longer than 0.5 s and was stopped"),
        (
            "final_result = open('/etc/passwd').read()",
            "the code may only compute: no files, no network, no other programs, no sleep (line 1)",
        ),
        ("x = ", "SyntaxError: invalid syntax (line 1)"),
        ("final_result = [0] * 10 ** 9", "the code wanted more memory than it may use (line 1)"),
    ],
)
async def test_a_program_that_gives_no_answer_gives_one_line(code, said):
    with pytest.raises(ToolError) as caught:
        await run_python(code, timeout_s=0.5)

    assert caught.value.what == said
