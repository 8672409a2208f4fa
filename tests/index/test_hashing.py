"""The embedder without a model: the same bytes everywhere, near where words are shared."""

import hashlib

import pytest

from babyagi.index.builtin import score
from babyagi.index.hashing import STOP_WORDS, HashEmbedder, split_words
from tests.index.library import TEXTS
from tests.llm.embedder_contract import LocalEmbedderContract

QUERIES = {
    "Bakery": "why did the bakery's revenue rise",
    "Database": "how long did moving the customers' database take",
    "Trails": "which hiking trails are closed",
    "Vaccine": "volunteers in the vaccine trial",
    "Solar": "electricity from panels on a roof",
    "Leak": "find the leak in the thumbnail service",
    "Museum": "opening hours of the museum",
    "Tomato": "when may tomato seedlings be planted",
    "Train": "is there a night train to Vienna",
    "Cookies": "session cookies without a secure flag",
}
GOLDEN = {
    "": "e61a2e3c81d6733c0f44e35ebb53f04f",
    "The revenue of the bakery rose by twelve percent.": "e3bf0b8042a6269e447baa2c01ccf73f",
    "東京に行く — naïve Straße v2.1": "51ccbf31b84ddf1d72ee9c786532776f",
}


def near(query: str) -> list[str]:
    embedder = HashEmbedder()
    scores = score(b"".join(map(embedder.embed_text, TEXTS.values())), embedder.embed_text(query))
    return sorted(TEXTS, key=lambda name: -scores[list(TEXTS).index(name)])


def misspell(text: str) -> str:
    """Swap two letters in the middle of each long word."""
    middles = ((word, len(word) // 2) for word in text.split())
    return " ".join(
        word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :] if len(word) > 5 else word
        for word, at in middles
    )


def digest(text: str) -> str:
    return hashlib.sha256(HashEmbedder().embed_text(text)).hexdigest()[:32]


class TestHashEmbedder(LocalEmbedderContract):
    making = "from babyagi.index.hashing import HashEmbedder; embedder = HashEmbedder()"

    @pytest.fixture
    def embedder(self):
        return HashEmbedder()

    @pytest.fixture
    def others(self):
        return [HashEmbedder(32)]


@pytest.mark.parametrize("text", GOLDEN)
def test_vectors_never_change(text):
    assert digest(text) == GOLDEN[text]


def test_texts_that_share_words_are_near():
    assert [near(query)[0] for query in QUERIES.values()] == list(QUERIES)


def test_misspelt_words_are_still_near():
    found = [near(misspell(query))[0] == name for name, query in QUERIES.items()]

    assert sum(found) >= 8


@pytest.mark.parametrize(
    ("query", "same", "other"),
    [
        ("東京の天気", "東京の天気は晴れです", "大阪で地震がありました"),
        ("погода в Москве", "В Москве хорошая погода", "Рецепт борща со сметаной"),
        ("हिन्दी भाषा", "हिन्दी भाषा का इतिहास", "आज का मौसम"),
        ("CAFÉ", "the café", "the cave"),
    ],
)
def test_every_script_is_read(query, same, other):
    vectors = b"".join(map(HashEmbedder().embed_text, (same, other)))
    to_same, to_other = score(vectors, HashEmbedder().embed_text(query))

    assert to_same > to_other + 0.1


def test_the_commonest_words_say_nothing_beside_others():
    assert "the" in STOP_WORDS
    assert HashEmbedder().embed_text("the bakery") == HashEmbedder().embed_text("a bakery")
    assert set(split_words("to be or not to be")) == {"to", "be", "or", "not"}


def test_a_text_counts_by_its_beginning():
    head = "word " * 7000

    assert HashEmbedder().embed_text(head + "octopus") == HashEmbedder().embed_text(head + "bakery")
