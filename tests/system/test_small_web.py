"""Runs on a web of 300 pages, odd and poisoned ones among them: what a report names as its sources,
and what a resumed run fetches. More seeds: `python -m tests.faults.webs`."""

import pytest

from tests.faults.webs import check_kill, check_poison, check_report
from tests.small_web import KINDS, SmallWeb


def test_the_web_has_300_pages_of_every_kind():
    web = SmallWeb(seed=1)

    assert len([place for place in web.pages if place[1] != "/robots.txt"]) == 300
    assert {*web.kind_by_name.values()} == {*KINDS}
    assert SmallWeb(seed=1).sentences == web.sentences != SmallWeb(seed=2).sentences


@pytest.mark.parametrize("seed", [1])
async def test_a_report_names_only_pages_that_were_fetched_and_sentences_that_stand_in_them(seed):
    assert await check_report(seed) == []


async def test_a_run_that_is_killed_and_resumed_fetches_nothing_again_that_was_recorded():
    assert await check_kill(2) == []


async def test_a_poisoned_page_changes_neither_tasks_nor_results_nor_what_is_fetched():
    assert await check_poison(3) == []
