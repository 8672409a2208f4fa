import asyncio
import importlib
import inspect
import logging
import sys

import pytest


@pytest.fixture
def campaign(monkeypatch, capfd):
    """Runs a campaign as its command does, and returns what it prints; it must find no fault.

    It runs in this process, which has imported what it needs and has a server that forks commands:
    a process of its own would begin with seconds of imports.
    """

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [name, *options])
        code = importlib.import_module(f"tests.faults.{name}").main()
        if inspect.iscoroutine(code):
            code = asyncio.run(code)
        out, err = capfd.readouterr()
        assert code == 0, out[-3000:] + err[-3000:]
        return out

    yield run
    logging.disable(logging.NOTSET)  # some campaigns let nothing be logged
