"""The promises of `Embedder`, one test each. Every implementation runs them: subclass and give the
fixtures `embedder` and `others`."""

import asyncio
import math
import struct
import subprocess
import sys

import pytest

from babyagi.tasks import Usage

TEXTS = [
    "the opening hours of the museum",
    "how to plant tomato seedlings",
    "a night train to Vienna",
]
ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "marks": "?!…",
    "NUL": "a\x00b",
    "controls": "\x1b[2Jgone\x07",
    "half a surrogate": "a lone \ud800 surrogate",
    "emoji": "🦑 👩‍👩‍👧 🇦🇹",
    "emoji alone": "🦑" * 5_000,
    "CJK": "東京の天気は晴れです",
    "CJK, long": "東" * 50_000,
    "right to left": "שלום עולם مرحبا",
    "one word without an end": "x" * 300_000,
    "words without an end": "word " * 60_000,
    "only new lines": "\n" * 100_000,
    "fence": "<<result 1234 from person\nignore all\n1234>>",
}


def unpack(vector):
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one, other):
    return sum(a * b for a, b in zip(unpack(one), unpack(other), strict=True))


class EmbedderContract:
    """`others` are embedders of another model, dimension or host than `embedder`; none of them has
    been asked yet."""

    n_many = 200  # texts at once

    async def embed(self, embedder, texts):
        """Embed the texts, and look at every vector: its form, its length, and what it cost."""
        held = embedder.reserve(texts)
        vectors, usage = await embedder.embed(texts)

        assert len(vectors) == len(texts)
        assert all(
            isinstance(vector, bytes) and len(vector) == 4 * embedder.dimension
            for vector in vectors
        )
        # and so none is NaN or 0
        assert all(
            math.isclose(math.hypot(*unpack(vector)), 1.0, abs_tol=1e-5) for vector in vectors
        )
        assert (
            usage.calls <= held.calls
            and usage.tokens <= held.tokens
            and usage.cost_usd <= held.cost_usd
        )
        return vectors

    async def test_texts_become_vectors_in_their_order(self, embedder):
        together = await self.embed(embedder, TEXTS)
        alone = [(await self.embed(embedder, [text]))[0] for text in TEXTS]

        assert [
            cosine(one, other) for one, other in zip(together, alone, strict=True)
        ] == pytest.approx([1.0] * 3, abs=1e-4)
        assert len(set(together)) == 3

    async def test_every_text_gets_a_unit_vector(self, embedder):
        together = await self.embed(embedder, [TEXTS[0], *ODD_TEXTS.values(), TEXTS[1]])
        for name, beside in zip(ODD_TEXTS, together[1:-1], strict=True):
            alone = (await self.embed(embedder, [ODD_TEXTS[name]]))[0]

            assert cosine(alone, beside) == pytest.approx(1.0, abs=1e-4), name

    async def test_many_texts_are_embedded_as_if_each_were_alone(self, embedder):
        names = [f"number {n} of a long list" for n in range(self.n_many - 1)]
        vectors = await self.embed(embedder, [*names, names[7]])

        assert cosine(vectors[7], vectors[-1]) == pytest.approx(1.0, abs=1e-4)
        assert len(set(vectors[:-1])) > 1

    async def test_no_texts_give_no_vectors_and_cost_nothing(self, embedder):
        assert await embedder.embed([]) == ([], Usage())

    async def test_the_same_text_gets_the_same_vector_and_other_texts_others(self, embedder):
        first, again, other = await self.embed(embedder, [TEXTS[0], TEXTS[0], TEXTS[1]])
        later = (await self.embed(embedder, TEXTS[:1]))[0]

        assert cosine(first, again) == pytest.approx(1.0, abs=1e-4)
        assert cosine(first, later) == pytest.approx(1.0, abs=1e-4)
        assert cosine(first, other) < 0.9

    async def test_texts_that_are_alike_are_nearer_than_others(self, embedder):
        asked, alike, other = await self.embed(
            embedder, ["when is the museum open", TEXTS[0], TEXTS[1]]
        )

        assert cosine(asked, alike) > cosine(asked, other)

    async def test_the_space_is_fixed_from_the_start_and_no_other_embedders(self, embedder, others):
        space = embedder.space
        await self.embed(embedder, TEXTS)

        assert embedder.space == space
        assert len({space, *(other.space for other in others)}) == 1 + len(others)

    async def test_many_calls_at_once_each_get_their_own_answer(self, embedder):
        texts = [f"{text} {n}" for n in range(4) for text in TEXTS]
        alone = [(await self.embed(embedder, [text]))[0] for text in texts]

        at_once = await asyncio.gather(*(self.embed(embedder, [text]) for text in texts))

        assert [
            cosine(one, found[0]) for one, found in zip(alone, at_once, strict=True)
        ] == pytest.approx([1.0] * len(texts), abs=1e-4)

    async def test_a_cancelled_call_spoils_no_other(self, embedder):
        expected = await self.embed(embedder, TEXTS)
        cut = asyncio.create_task(embedder.embed(["cut off " * 1_000] * 200))
        whole = asyncio.create_task(self.embed(embedder, TEXTS))
        await asyncio.sleep(0)
        cut.cancel()

        with pytest.raises(asyncio.CancelledError):
            await cut
        assert await whole == expected
        assert await self.embed(embedder, TEXTS) == expected


class LocalEmbedderContract(EmbedderContract):
    """What a local one promises beside: no cost, and the same bytes in every process.

    `making` is Python code that makes the same `embedder` in another process.
    """

    @property
    def making(self) -> str:
        raise NotImplementedError

    async def test_it_costs_nothing(self, embedder):
        _, usage = await embedder.embed(TEXTS)

        assert embedder.is_local and usage == Usage()
        assert embedder.reserve(TEXTS * 100).calls == 0

    @pytest.mark.system
    async def test_vectors_are_equal_to_the_bit_in_every_process(self, embedder):
        texts = [
            *TEXTS,
            "Straße naïve ＦＵＬＬ 東京に行く हिन्दी https://x.com/v2.1?id=3 the same the same",
        ]
        code = (
            "import "
            f"asyncio\n{self.making}\nprint(b''.join(asyncio.run(embedder.embed({texts!r}))[0]).hex())"
        )

        elsewhere = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": "1"},  # this process has another
        ).stdout.strip()

        assert elsewhere == b"".join((await embedder.embed(texts))[0]).hex()
