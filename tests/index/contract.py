"""The promises of `VectorIndex`, one test each. Every implementation runs them: subclass and give
the fixture `index`."""

import asyncio
import inspect
import struct

import pytest

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.hashing import HashEmbedder
from babyagi.index.port import IndexItem

EMBEDDER = HashEmbedder(64)


def make_id(n: int) -> str:
    return f"00000000-0000-5000-8000-{n:012x}"


def make_item(n: int, text: str) -> IndexItem:
    return IndexItem(id=make_id(n), vector=EMBEDDER.embed_text(text), text=text, task_id=n)


ITEMS = [
    make_item(1, "bread and an oven"),
    make_item(2, "the orders table"),
    make_item(3, "trails at the lake"),
]


class VectorIndexContract:
    async def test_a_ping_of_what_can_be_used_returns_and_changes_nothing(self, index):
        await index.ping()
        await index.upsert("one", ITEMS)
        await index.ping()

        assert sorted(await index.ids("one")) == sorted(item.id for item in ITEMS)

    async def test_the_nearest_comes_first_with_its_cosine_similarity(self, index):
        await index.upsert("one", ITEMS)

        hits = await index.query("one", EMBEDDER.embed_text("the orders table"), k=2)

        assert hits[0].id == ITEMS[1].id
        assert hits[0].score == pytest.approx(1.0, abs=1e-5)
        assert len(hits) == 2 and hits[0].score > hits[1].score

    async def test_a_score_is_the_cosine_of_the_angle_between_two_vectors(self, index):
        east, north_east = struct.pack("<2f", 1, 0), struct.pack("<2f", 0.6, 0.8)
        await index.upsert(
            "flat", [IndexItem(id=make_id(77), vector=north_east, text="", task_id=1)]
        )

        assert (await index.query("flat", east, k=1))[0].score == pytest.approx(0.6, abs=1e-5)

    async def test_upserting_again_changes_nothing_and_a_new_vector_takes_the_old_ones_place(
        self, index
    ):
        await index.upsert("one", ITEMS)
        await index.upsert("one", ITEMS)
        await index.upsert("one", [make_item(1, "an octopus thinks")])

        assert sorted(await index.ids("one")) == sorted(item.id for item in ITEMS)
        assert (await index.query("one", EMBEDDER.embed_text("an octopus thinks"), k=1))[
            0
        ].id == ITEMS[0].id

    async def test_fewer_come_when_there_are_fewer_and_none_from_nowhere(self, index):
        await index.upsert("one", ITEMS)

        assert len(await index.query("one", ITEMS[0].vector, k=50)) == 3
        assert await index.query("unknown", ITEMS[0].vector, k=5) == []
        assert await index.ids("unknown") == []

    async def test_collections_do_not_see_each_other(self, index):
        await index.upsert("one", ITEMS[:1])
        await index.upsert("two", ITEMS[1:])

        assert await index.ids("one") == [ITEMS[0].id]
        assert ITEMS[0].id not in [hit.id for hit in await index.query("two", ITEMS[0].vector, k=5)]

    async def test_a_dropped_collection_is_gone_and_can_be_filled_again_with_other_dimensions(
        self, index
    ):
        await index.upsert("one", ITEMS)
        await index.upsert("two", ITEMS)

        await index.drop("one")
        await index.drop("one")

        assert await index.ids("one") == []
        assert len(await index.ids("two")) == 3
        await index.upsert(
            "one", [IndexItem(id=make_id(88), vector=struct.pack("<2f", 1, 0), text="", task_id=1)]
        )
        assert await index.ids("one") == [make_id(88)]

    async def test_vectors_of_another_length_are_refused_whole(self, index):
        await index.upsert("one", ITEMS)
        short = IndexItem(id=make_id(88), vector=struct.pack("<2f", 1, 0), text="", task_id=9)

        with pytest.raises(StoreUnusableError):
            await index.upsert("one", [short])

        assert len(await index.ids("one")) == 3

    async def test_any_text_can_be_kept(self, index):
        odd = ["", "\x00", "a lone \ud800 surrogate", "東京", "x" * 100_000]
        await index.upsert(
            "one",
            [
                IndexItem(id=make_id(n), vector=ITEMS[0].vector, text=text, task_id=n)
                for n, text in enumerate(odd)
            ],
        )

        assert len(await index.ids("one")) == len(odd)

    async def test_more_items_than_one_batch_go_in_at_once(self, index):
        await index.upsert("one", [make_item(n, f"number {n}") for n in range(1, 602)])

        assert len(set(await index.ids("one"))) == 601


class SharedIndexContract(VectorIndexContract):
    """Of an index behind a server, which many workers use at once; `open_another` opens it as one
    more of them."""

    async def test_eight_workers_that_begin_at_once_share_one_collection(self, open_another):
        indexes = [open_another() for _ in range(8)]
        await asyncio.gather(
            *(
                index.upsert("eight", [make_item(n, f"text {n}")])
                for n, index in enumerate(indexes, start=1)
            )
        )

        assert len(await indexes[0].ids("eight")) == 8
        for index in indexes:
            await index.close()

    async def test_a_collection_that_another_worker_dropped_can_be_dropped_again(
        self, open_another
    ):
        index, other = open_another(), open_another()
        await index.upsert("one", ITEMS)
        await other.drop("one")

        await index.drop("one")

        assert await index.ids("one") == []
        await index.close()
        await other.close()


class OurServerContract(SharedIndexContract):
    """Of an index behind a server of ours, whose state is `server[0]`; `open_another` takes the
    options of the index."""

    async def test_calls_that_come_first_at_once_share_one_client_and_leave_none_open(
        self, open_another
    ):
        index, opened = open_another(), []

        def open_and_count(open_=index._open):
            opened.append(index)
            return open_()

        index._open = open_and_count

        await asyncio.gather(*(index.ids("one") for _ in range(4)))

        await index.close()
        assert len(opened) == 1

    async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_the_deadline(
        self, server, open_another
    ):
        patient, hasty = open_another(), open_another(timeout_s=0.5)
        await patient.upsert("one", ITEMS)
        server[0].silent_s = 3.0

        with pytest.raises(IndexUnavailableError):
            await hasty.query("one", ITEMS[0].vector, k=1)
        await patient.close()
        await hasty.close()


def make_every_error(module, arguments):
    """One exception of each class that a vendor's module of errors defines. `arguments` are those
    of their constructors that are no texts."""
    for name, kind in inspect.getmembers(module, inspect.isclass):
        vendor = module.__name__.partition(".")[0]
        if issubclass(kind, Exception) and kind.__module__.partition(".")[0] == vendor:
            wanted = [
                p.name
                for p in list(inspect.signature(kind.__init__).parameters.values())[1:]
                if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            yield pytest.param(kind(*(arguments.get(one, "text") for one in wanted)), id=name)
