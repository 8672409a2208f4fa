"""Memories of these tests: their own clock, ids in order."""

import itertools
from datetime import UTC, datetime

import pytest

from babyagi.memory.log import MemoryLog

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def open_log():
    ids = itertools.count(1)

    def open_one(path=None):
        return MemoryLog(path, clock=lambda: AT, new_id=lambda: f"id-{next(ids)}")

    return open_one
