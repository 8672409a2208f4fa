"""Looking at earlier results: a search gives extracts, a number gives one whole."""

import json

import pytest

from babyagi.errors import ToolError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.search import ResultSearch
from babyagi.tasks import Effect
from babyagi.tools.recall import build_recall
from tests.index.library import TEXTS, Embedding, id_by_name, open_library


async def open_recall(texts=TEXTS):
    store, objective = await open_library(texts)
    return build_recall(
        ResultSearch(store, BuiltinIndex(), objective=objective), embed=Embedding()
    ), await id_by_name(store, objective)


async def test_a_query_finds_numbers_names_and_extracts_the_best_first():
    filler = "Nothing of this is about what is asked. " * 50
    recall, ids = await open_recall(
        TEXTS | {"Museum": f"{filler}The exhibition of manuscripts opens at 9.{filler}"}
    )

    passage = await recall.run({"query": "when does the exhibition open"})

    lines = passage.text.split("\n")
    assert lines[0].startswith(f"{ids['Museum']}. Museum: ") and "opens at 9." in lines[0]
    assert len(lines) <= 5 and all(len(line) < 400 for line in lines)
    assert passage.origin == "tool:recall"


async def test_a_number_opens_one_result_whole():
    recall, ids = await open_recall()

    passage = await recall.run({"task": ids["Solar"]})

    assert (passage.text, passage.origin) == (TEXTS["Solar"], f"result:{ids['Solar']}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"task": 47}, "task 47 has no result"),
        ({}, "give a query"),
        ({"query": "  "}, "give a query"),
    ],
)
async def test_a_result_that_cannot_be_recalled_is_an_error_of_one_line(arguments, said):
    recall, _ = await open_recall()

    with pytest.raises(ToolError, match=said) as raised:
        await recall.run(arguments)

    assert "\n" not in str(raised.value)


async def test_an_objective_without_results_says_so():
    recall, _ = await open_recall({})

    assert (await recall.run({"query": "anything"})).text == "There are no earlier results."


async def test_it_only_reads_and_takes_little_room_in_a_prompt():
    recall, _ = await open_recall()

    assert recall.effect is Effect.READ
    assert (
        len(
            json.dumps(
                {
                    "name": recall.name,
                    "description": recall.description,
                    "parameters": recall.parameters,
                }
            )
        )
        < 300
    )
