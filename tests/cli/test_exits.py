import pytest

from babyagi import errors
from babyagi.cli.exits import code_of_error, code_of_objective
from babyagi.tasks import StopReason
from tests.cli.samples import objective, running_objective

CODES = {
    "finished": 0,
    "objective_met": 0,
    "limit:tasks": 3,
    "limit:calls": 3,
    "limit:tokens": 3,
    "limit:cost": 3,
    "limit:time": 3,
    "waiting": 5,
    "unmet": 6,
    "stalled": 6,
    "failed": 6,
    "cancelled": 130,
}


@pytest.mark.parametrize("reason", StopReason)
def test_every_stop_reason_has_its_exit_code(reason):
    assert code_of_objective(objective(stop_reason=reason)) == CODES[reason]


def test_a_paused_objective_exits_with_0():
    assert code_of_objective(running_objective()) == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SettingsError("x"), 2),
        (errors.LimitReachedError("x", limit="cost", is_final=True), 3),
        (errors.CredentialsError("x"), 4),
        (errors.ModelRejectedError("x"), 6),
        (errors.ModelUnavailableError("x"), 6),
        (errors.StoreUnavailableError("x"), 7),
        (errors.StoreUnusableError("x"), 7),
        (errors.NotFoundError("x"), 8),
        (errors.ObjectiveStoppedError("x"), 2),
        (errors.LeaseLostError("x"), 1),
    ],
)
def test_every_error_that_a_person_sees_has_its_exit_code(error, code):
    assert code_of_error(error) == code
