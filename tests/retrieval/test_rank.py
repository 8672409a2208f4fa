from pathlib import Path
from runpy import run_path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babyagi.retrieval.rank import PART_CHARS, Scored, rank, scored, split_parts, top_p
from babyagi.tools.declare import load_tools
from tests.linear import grows_faster_than_linearly
from tests.llm.onnx_files import make_cross_encoder

CITIES = ["Paris is the capital of France.", "Oslo is in Norway.", "The capital of Peru is Lima."]


def test_the_text_with_the_rare_words_of_the_question_comes_first():
    ranked = rank("What is the capital of Peru?", CITIES)

    assert [one.index for one in ranked] == [2, 0, 1]
    assert sum(one.share for one in ranked) == pytest.approx(1)


def test_forms_of_a_word_are_one_word():
    assert rank("backup", ["About parking.", "Backups are kept."])[0].index == 1


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("吊り橋 長さ", "この吊り橋の長さは320メートルです。"),
        ("大桥多长", "大桥全长320米。"),
        ("ความยาวสะพาน", "สะพานมีความยาว 320 เมตร"),
        ("다리 길이", "이 다리의 길이는 320미터입니다."),
        ("लंबाई", "पुल की लंबाई 320 मीटर है।"),
        ("café", "Cafe\u0301 32"),
        ("３２０", "320 m"),
    ],
)
def test_words_are_found_in_scripts_without_blanks_and_however_they_are_written(question, text):
    others = ["季節を問わず人が来ます。", "游客不断。", "นักท่องเที่ยว", "관광객은 옵니다.", "पर्यटक"]

    assert [one.index for one in rank(question, [*others, text])] == [len(others)]


def test_a_question_that_nothing_bears_on_ranks_nothing():
    assert rank("zebra", CITIES) == rank("", CITIES) == rank("x", []) == []


@pytest.mark.parametrize(
    ("p", "kept"), [(0.0, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.81, 3), (0.95, 3), (1.0, 4)]
)
def test_top_p_keeps_the_smallest_number_whose_shares_reach_p(p, kept):
    ranked = [
        Scored(index=at, score=share, share=share)
        for at, share in enumerate((0.5, 0.3, 0.15, 0.05))
    ]

    assert [one.index for one in top_p(ranked, p)] == list(range(kept))
    assert top_p([], p) == []


def test_given_scores_are_shared_by_their_softmax_and_a_least_number_is_kept():
    ranked = scored([2.0, -1.0, 1.5, 0.5])

    assert [one.index for one in ranked] == [0, 2, 3, 1]
    assert [one.index for one in top_p(ranked, 0.8)] == [0, 2]
    assert [one.index for one in top_p(ranked, 0.95)] == [0, 2, 3]
    assert [one.index for one in top_p(ranked, 0.1, min_top_k=3)] == [0, 2, 3]
    assert sum(one.share for one in ranked) == pytest.approx(1)
    assert scored([]) == []


def split(text):
    return list(split_parts(text.split("\n")))


def test_a_text_is_split_at_its_headings_and_a_heading_stays_with_the_one_below_it():
    parts = split("intro\n\n# Ops\n\n## Backups\n\nNightly.\n\nKept.\n\n# Home\n\nParking.")

    assert [(part.headings, " ".join(filter(None, part.lines))) for part in parts] == [
        ((), "intro"),
        (("Ops", "Backups"), "# Ops ## Backups Nightly. Kept."),
        (("Home",), "# Home Parking."),
    ]
    assert [part.first_line for part in parts] == [1, 3, 11]
    assert parts[1].text.startswith("Backups\n# Ops\n")


@given(st.text(alphabet="abcde .\n#=", max_size=4000))
def test_a_part_has_at_most_its_length_and_no_word_is_lost(text):
    parts = split(text)

    assert all(sum(map(len, part.lines)) <= PART_CHARS for part in parts)
    joined = "".join(line for part in parts for line in part.lines)
    assert joined.count("a") == text.count("a")


def test_headings_with_nothing_below_them_are_parts():
    parts = split("# News\n\n## Rain\n\n## Snow\n\nIt snows.\n\n## Sun")

    assert [part.headings for part in parts] == [("News", one) for one in ("Rain", "Snow", "Sun")]


# pages that are made to cost time: each gives a text of about n characters
HOSTILE = {
    "a heading of blanks that is none": lambda n: f"# {' ' * n}a\nb",
    "a long heading over many parts": lambda n: (
        "# " + "h" * (n // 2) + "".join(f"\n\n## {k}\n\nx" for k in range(n // 24))
    ),
    "long headings of every level": lambda n: (
        "".join(f"{'#' * k} {'h' * (n // 12)}\n\n" for k in range(1, 7)) + "x y\n\n" * (n // 10)
    ),
    "headings alone": lambda n: "# a\n\n" * (n // 5),
    "paragraphs of one letter": lambda n: "a\n\n" * (n // 3),
    "lines of blanks": lambda n: ("\n" + " " * 50) * (n // 51) + "x",
    "one word": lambda n: "a" * n,
    "signs of headings": lambda n: "#" * n,
    "sentences of nothing": lambda n: ". " * (n // 2),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", HOSTILE)
def test_splitting_and_ranking_grow_with_a_page_and_no_faster(name):
    def work(n):
        rank("what is a", [part.text for part in split(HOSTILE[name](n))])

    assert grows_faster_than_linearly(work, 64_000) == ""


def test_a_part_has_the_beginnings_of_its_headings_and_a_bare_heading_is_whole():
    (part,) = split(f"# {'h' * 500}\n\ntext")
    assert part.headings == ("h" * 120,)

    assert sum(line.count("h") for one in split(f"# {'h' * 2000}") for line in one.lines) == 2000


@pytest.mark.parametrize("text", ["####### seven", "#none", "#", "# "])
def test_a_line_that_is_no_heading_is_text(text):
    assert [part.headings for part in split(f"{text}\n\nx")] == [()]


# -- a model that ranks
# --------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "examples" / "cross_encoder.py"


def test_the_example_of_a_cross_encoder_ranks_by_what_its_model_says_of_question_and_text(
    tmp_path, monkeypatch
):
    pytest.importorskip("onnxruntime")
    make_cross_encoder(tmp_path, weights={"museum": 3.0, "train": 1.0, "tomato": -5.0})
    monkeypatch.setenv("CROSS_ENCODER", str(tmp_path))
    tools, ranker = load_tools(str(EXAMPLE), cwd=tmp_path), run_path(str(EXAMPLE))["ranker"]
    texts = ["The tomato is open.", "A night train.", "The museum, the hours of a museum."]

    ranked = rank("is it open", texts, ranker=ranker)

    assert [tool.name for tool in tools] == ["ranked_web_search", "ranked_open_page"]
    assert [one.index for one in ranked] == [2, 1, 0]
    # the softmax of 6, 1 and -5
    assert [one.share for one in ranked] == pytest.approx([0.99329, 0.0066928, 0.0000166], rel=1e-3)
    assert [one.index for one in top_p(ranked, 0.99)] == [2]
    assert rank("", texts, ranker=ranker) == [] == rank("x", [], ranker=ranker)
    scores = ranker.score("train hours", ["museum"] * 200 + ["the hours of the train"])
    assert sum(score > 0 for score in scores) == 64 and scores[-1] > 0
