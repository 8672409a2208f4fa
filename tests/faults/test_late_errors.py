"""Twenty runs; a thousand: `python -m tests.faults.late_errors`."""

import pytest

from tests.faults.late_errors import run_once

pytestmark = pytest.mark.faults


def test_errors_after_success_break_no_promise():
    assert sum(run_once(seed, on_sqlite=seed % 10 == 0).total() for seed in range(20)) > 100
