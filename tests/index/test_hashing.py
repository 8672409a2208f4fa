"""The embedder without a model: the same bytes everywhere, near where words are shared."""

import hashlib

import pytest

from babyagi.index.builtin import score_all
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


def scramble(chars: str, *, n_chars: int) -> str:
    """A text of these characters, the same on every machine."""
    state, made = 1, []
    for _ in range(n_chars):
        state = state * 48271 % 0x7FFF_FFFF
        made.append(chars[state % len(chars)])
    return "".join(made)


ODD = {
    "prose": ["\n".join(TEXTS.values()), *TEXTS.values()],
    "repeated": ["banana ananas banana", "word " * 7_000, "aaaaaaaa aaaa aa a", "ab" * 40_000],
    "short": ["a", "to be or not to be", "7", "É", "ß", "ﬁ", "_", "x_y", "A.B.C. 1,200 km²"],
    "unseen": ["\0\u200b\ufeff", "so\u00adft hy\u00adphen", "\ud800 half \udfff", "e\u0301 é"],
    "long words": ["x" * 20, "x" * 21, "x" * 64, "x" * 65, "Pneumono" * 30, "漢" * 200],
    "signs": ["👩‍👩‍👧 family 🇳🇴", "हिन्दी भाषा", "ไทย", "İstanbul ǅ Straße", "①②③ ½ ﷺ"],
    "all bytes": ["".join(map(chr, range(1, 0x3000)))],
    "mixed": [scramble("abcdeéß 漢字かなक्षñ \n.-_'0129", n_chars=n) for n in (10, 100, 3_000)],
    "letters": [scramble("etaoin shrdlu ", n_chars=n) for n in (10, 100, 3_000, 40_000)],
}
GOLDEN_ODD = {
    ("prose", 768): "e83a9db03e003bca86b4cf16b6986bca",
    ("repeated", 768): "4d34c718d7351952338f34e20be75646",
    ("short", 768): "1ca7ecbff42c73aa71e2db49259d223c",
    ("unseen", 768): "e1313aa2c7abffe5fc49a2173aed03e5",
    ("long words", 768): "bae5f7b6ddb862b1b093999aab2e086b",
    ("signs", 768): "494b15cc41873a9fefefb3e51580bcc1",
    ("all bytes", 768): "b767b6a5723e17dd61f0d4077d4ee6b0",
    ("mixed", 768): "134efd0cf3a08e2513d62605fde5b9c9",
    ("letters", 768): "385421b216e847034473563dc0d20647",
    ("prose", 32): "6ec83be71b7e1506a916ba351ec9de7b",
    ("repeated", 32): "90bbebe19af9d4944172f54d35cbe875",
    ("short", 32): "d0be9a4877ca0ff28bcfe7448264e1ac",
    ("unseen", 32): "36aab0f2d64b102c2ada49ed914b9e9b",
    ("long words", 32): "a7167ab288c4d60694240ef19f0f6a82",
    ("signs", 32): "a6d461e2590abbaec00433960519df43",
    ("all bytes", 32): "a073cebaf4297c75ef7a52dc3831935b",
    ("mixed", 32): "0e467e278aa0de639d0d78f7af74ff08",
    ("letters", 32): "38a60a3a8654896d7e1d97003d1955f7",
}


def near(query: str) -> list[str]:
    embedder = HashEmbedder()
    vectors = dict(enumerate(map(embedder.embed_text, TEXTS.values())))
    scores = score_all(vectors, embedder.embed_text(query))
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


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("dimension", [768, 32])
def test_vectors_of_odd_texts_never_change(kind, dimension):
    embedder = HashEmbedder(dimension)
    vectors = b"".join(map(embedder.embed_text, ODD[kind]))

    assert hashlib.sha256(vectors).hexdigest()[:32] == GOLDEN_ODD[kind, dimension]


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
    vectors = dict(enumerate(map(HashEmbedder().embed_text, (same, other))))
    scores = score_all(vectors, HashEmbedder().embed_text(query))

    assert scores[0] > scores[1] + 0.1


def test_the_commonest_words_say_nothing_beside_others():
    assert "the" in STOP_WORDS
    assert HashEmbedder().embed_text("the bakery") == HashEmbedder().embed_text("a bakery")
    assert set(split_words("to be or not to be")) == {"to", "be", "or", "not"}


def test_a_text_counts_by_its_beginning():
    head = "word " * 7000

    assert HashEmbedder().embed_text(head + "octopus") == HashEmbedder().embed_text(head + "bakery")
