"""The set that retrieval is measured on: what its script makes, and the least that a search must find in it."""

import json
from collections import Counter

from babyagi.resultstore.builtin import BuiltinIndex
from babyagi.resultstore.search import ResultSearch
from benchmarks.retrieval import DATA
from benchmarks.retrieval_set import KINDS, make_set
from tests.resultstore.library import Embedding, open_library

DATA_SET = json.loads(DATA.read_text(encoding="utf-8"))
LEAST = {"same words": 0.95, "misspelt": 0.85, "as a task": 0.95}  # recall@5; a paraphrase is beyond what words can do


def test_the_set_is_what_its_script_makes():
    assert make_set() == DATA_SET


def test_the_set_has_results_and_queries_of_every_kind_and_every_answer_is_in_its_result():
    kinds = Counter(query["kind"] for query in DATA_SET["queries"])

    assert len(DATA_SET["results"]) >= 200 and sum(kinds.values()) >= 200
    assert set(kinds) == set(KINDS)
    assert all(query["answer"] in DATA_SET["results"][query["result"]]["text"] for query in DATA_SET["queries"])
    assert len({query["answer"] for query in DATA_SET["queries"]}) == len(DATA_SET["queries"]) // len(KINDS)


async def test_as_much_is_found_as_the_documents_say():
    store, objective = await open_library({result["name"]: result["text"] for result in DATA_SET["results"]})
    names = [result["name"] for result in DATA_SET["results"]]
    search, embed = ResultSearch(store, BuiltinIndex(), objective=objective), Embedding()
    results = await store.results(objective.id)
    vectors = await embed([f"{result.task_name}\n{result.text}" for result in results])
    await store.store_vectors(
        objective.id, space=objective.spec.embedding_space, vectors=dict(zip([result.task_id for result in results], vectors, strict=True))
    )
    await store.mark_indexed(objective.id, task_ids=[result.task_id for result in results])
    hits: Counter[str] = Counter()
    queries = [query for query in DATA_SET["queries"] if query["kind"] in LEAST][::4]
    for query in queries:
        found = await search.relevant(query["text"], k=5, embed=embed)
        hits[query["kind"]] += names[query["result"]] in [entry.result.task_name for entry in found]
    asked = Counter(query["kind"] for query in queries)

    assert {kind: hits[kind] / asked[kind] >= least for kind, least in LEAST.items()} == dict.fromkeys(LEAST, True), hits
