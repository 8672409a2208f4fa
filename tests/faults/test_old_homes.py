"""A home of the schema before, with the built-in index; with each of the five indexes:
`python -m tests.faults.old_homes`."""

import subprocess

import pytest

from support.commits import ROOT
from tests.faults.old_homes import COMMITS

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_an_objective_that_earlier_code_began_goes_on_and_loses_nothing(campaign):
    known = subprocess.run(["git", "cat-file", "-e", COMMITS[0]], cwd=ROOT, check=False)
    if known.returncode:
        pytest.skip("the history of this repository is not here")

    out = campaign("old_homes", "--commits", COMMITS[0], "--indexes", "builtin")

    assert out.rstrip().endswith("met"), out
