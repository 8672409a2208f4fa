"""The report that the program writes around the model's answer."""

import pytest

from babyagi.agents.report import render_report
from babyagi.cli.root import babyagi
from babyagi.tasks import StopReason
from tests.cli import samples


@pytest.mark.parametrize("reason", [reason for reason in StopReason if reason.startswith("limit:")])
def test_a_report_of_a_run_that_a_limit_ended_names_the_option_that_raises_it(reason):
    option = f"--max-{reason.removeprefix('limit:')}"

    report = render_report(samples.objective(stop_reason=reason), answer="It is so.", why_no_answer="", tasks=[], results=[])

    assert f"`babyagi extend --objective 3 {option} N`" in report
    assert option in [name for parameter in babyagi.commands["extend"].params for name in parameter.opts]
