"""Ordinary programs run as they are written, with the answer that plain Python gives."""

import platform
import sys

import pytest

from babyagi.sandbox import confined
from babyagi.sandbox.python import run_python
from tests.sandbox.ordinary import HELD_OUT, KNOWN, load

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in confined.ARCHITECTURES,
        reason="code can be confined on Linux only",
    ),
]
PROGRAMS = load(KNOWN) | load(HELD_OUT)


def test_there_are_ninety_programs():
    assert len(PROGRAMS) == 90


@pytest.mark.parametrize("name", PROGRAMS)
async def test_an_ordinary_program_runs_as_it_is_written(name):
    code, expected = PROGRAMS[name]

    assert (await run_python(code)).text.rstrip() == expected.rstrip()
