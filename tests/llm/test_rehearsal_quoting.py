import pytest

from babyagi.llm.rehearsal import (
    Quote,
    find_quotes,
    likeness,
    rank_quotes,
    read_question,
    split_document,
    words_of,
)


def split(path, text):
    return split_document(path, list(enumerate(text.splitlines(), 1)))


def shown(path, text):
    return [
        (section.above, section.text) for section in split(path, text) if not section.is_heading
    ]


def best(path, text, question):
    asked, sections = read_question(question), split(path, text)
    return quotes_of(asked, path, sections, n=1)[0]


def quotes_of(asked, path, sections, *, n):
    weights = asked.weigh(asked.counts(sections), len(sections))
    return find_quotes(asked, weights, path, sections, n=n)


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("# House\n\n## Roof\n\nIt leaks.", ("House", "Roof")),
        ("House\n=====\n\nRoof\n----\n\nIt leaks.", ("House", "Roof")),
        ("=====\nHouse\n=====\n\nRoof\n~~~~\n\nIt leaks.", ("House", "Roof")),
        ("HOUSE\n\nRoof\n\nIt leaks.", ("HOUSE", "Roof")),
        ("# House\n\n**Roof**\n\nIt leaks.", ("House", "Roof")),
        ("# House\n\n### Old\n\n## Roof\n\nIt leaks.", ("House", "Roof")),
    ],
)
def test_a_paragraph_knows_its_headings_however_they_are_written(text, above):
    assert shown("a.md", text) == [(above, "It leaks.")]


def test_an_item_stands_under_its_parent_and_under_the_line_before_the_list():
    text = "To buy:\n\n- fruit\n  - apples, red\n    and green\n- bread\n"

    assert shown("a.md", text) == [
        ((), "To buy:"),
        (("To buy:",), "fruit"),
        (("To buy:", "fruit"), "apples, red and green"),
        (("To buy:",), "bread"),
    ]


def test_a_row_stands_under_the_head_of_its_table():
    assert shown("a.md", "# Prices\n\n| what | euros |\n|---|---|\n| tea | 3 |") == [
        (("Prices", "what | euros"), "| tea | 3 |")
    ]
    assert shown("a.csv", "what,euros\ntea,3\n") == [(("what,euros",), "tea,3")]


def test_the_head_of_a_letter_stands_over_what_follows():
    text = "From: Ann\nSubject: The roof\n\nIt leaks.\n\nFrom: Bob\nSubject: The door\n\nIt sticks."

    assert shown("a.txt", text)[1] == (("From: Ann; Subject: The roof",), "It leaks.")
    assert shown("a.txt", text)[3] == (("From: Bob; Subject: The door",), "It sticks.")


def test_a_sentence_over_two_lines_is_quoted_whole_from_where_it_begins():
    text = (
        "The roof was mended in spring, and since then nobody has seen any\n"
        "water. The door of the cellar still sticks when it rains for more than\n"
        "two days in a row.\n"
    )

    quote = best("a.txt", "\n" * 3 + text + "\n" + "Filler without any weight. " * 30, "the cellar")

    assert quote.line == 4
    assert quote.text.endswith("when it rains for more than two days in a row.")


def test_a_line_that_ends_early_ends_a_sentence():
    text = (
        "Feeding the cats is the task of whoever is home\n"
        "Water the plants\n"
        "Lock the door, and put the key under the third flower pot here\n"
    )

    assert [unit.line for section in split("a.txt", text) for unit in section.units] == [1, 2, 3]


def test_code_is_quoted_by_its_lines_under_what_they_belong_to():
    text = "class Pump:\n    def start(self):\n\n        self.litres = 40\n"

    quote = best("pump.py", text, "How many litres does the pump have?")

    assert (quote.text, quote.line) == ("self.litres = 40", 4)
    assert quote.above == "class Pump > def start(self)"


@pytest.mark.parametrize(
    ("one", "other"),
    [("backup", "backups"), ("decide", "decision"), ("berry", "berries"), ("price", "pricing"),
     ("sicherung", "datensicherung")],
)  # fmt: skip
def test_forms_of_one_word_are_alike(one, other):
    assert likeness(one, other) == likeness(other, one) >= 0.5


@pytest.mark.parametrize(
    ("one", "other"), [("cat", "category"), ("2024", "2025"), ("and", "sand"), ("water", "later")]
)
def test_different_words_are_not_alike(one, other):
    assert likeness(one, other) == 0


def test_case_and_accents_do_not_matter_and_a_script_without_blanks_is_read_in_pairs():
    assert words_of("Café ÉTÉ straße") == ("cafe", "ete", "strasse")
    assert words_of("备份保存") == ("备份", "份保", "保存")


def test_what_stands_before_the_colon_of_an_instruction_is_not_asked_for():
    asked = read_question("Answer from the documents in the folder: Where is the key?")

    assert set(asked.weight_by_word) == {"where", "is", "the", "key"}
    assert "note" in read_question("Which note: the first?").weight_by_word


def test_a_quote_runs_on_to_the_next_heading_and_takes_a_command_along():
    text = "# Water\n\nStop the pump now.\n\n```\nhalt 7\n```\n\n- and wait.\n\n# Start\n\nPull.\n"

    assert best("a.md", text, "How do I stop the pump?").text == (
        "Stop the pump now. halt 7 · and wait."
    )


def test_no_quote_takes_along_what_another_one_quotes():
    text = "Paint dries slowly in the cellar.\n\nPaint for the cellar dries in six hours.\n"
    asked, sections = read_question("Why does paint in the cellar dry slowly?"), split("a.md", text)

    quotes = quotes_of(asked, "a.md", sections, n=4)

    assert [quote.text.count("Paint") for quote in quotes] == [2]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.csv", "room,hook\ncellar,4 left of the door\nattic,5\n"),
        ("a.log", "the cellar is hook 4\n" + "the attic is open\n" * 5),
    ],
)
def test_a_record_is_quoted_by_itself(path, text):
    assert "attic" not in best(path, text, "Which hook has the cellar?").text


def test_an_answer_is_more_than_the_words_of_the_question():
    text = "- Opening hours\n- Opening hours are from nine to five\n"

    assert best("a.md", text, "What are the opening hours?").line == 2


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.asc", "= House\n\n[[roof]]\n== Roof\n\n[source]\n----\nx = 1\n----\n\nIt leaks."),
        ("a.mediawiki", "=House=\n\n==Roof==\n\n# It leaks."),
        ("a.md", "---\nauthor: Roof\ntitle: House\n---\n## Roof\nIt leaks."),
    ],
)
def test_other_markups_are_text_under_their_headings(path, text):
    assert shown(path, text)[-1] == (("House", "Roof"), "It leaks.")


def test_a_list_stands_under_the_whole_paragraph_that_leads_to_it():
    text = "The pool has bounds.\nThey are set by these numbers:\n\n- `max_open`, 100 if left out\n"

    assert shown("a.md", text)[-1][0] == ("The pool has bounds. They are set by these numbers:",)


def test_a_name_of_a_program_has_the_words_it_is_put_together_from():
    assert words_of("ReadTimeout") == ("readtimeout", "read", "timeout")


def rank(question, *texts):
    asked = read_question(question)
    quotes = [Quote(text=text, path="a.md", line=n) for n, text in enumerate(texts, 50)]
    counts = asked.counts(split("a.md", "\n\n".join(texts)))
    ranked = rank_quotes(asked, asked.weigh(counts, 10), quotes, counts_by_path={"a.md": counts})
    return [texts.index(quote.text) for _, quote in ranked]


def test_a_long_passage_counts_as_its_best_sentence_does():
    answer = "The harbour opens at seven in the morning."
    rest = "Boats wait outside for a pilot who knows the sands. " * 6

    assert rank(
        "When does the harbour open?", "An open harbour is a joy.", answer + " " + rest
    ) == [
        1,
        0,
    ]


def test_a_passage_with_the_words_of_the_best_ones_is_found_though_the_question_has_other_words():
    order = rank(
        "Who checks the certificate of a harbour?",
        "Each harbour has a certificate about customs, signed by the warden and the surveyor.",
        "Buses pass the harbour and then go on to the market and to the old station.",
        "The warden of a harbour reads it with the surveyor and refuses it where customs differ.",
    )

    assert order == [0, 2, 1]


def test_a_page_of_a_pdf_is_read_as_prose_though_it_has_no_blank_lines():
    page = (
        "## Page 1\n\nWashing machine WM-900\nClean the filter every month. Turn the knob left.\n"
        "Error E18: it does not drain. Check the pump and the hose.\nProgramme Duration\n"
        "Cotton 2 h 40\nWool 0 h 45\nQuick 0 h 20"
    )

    found = best("machine.pdf", page, "How long does the wool programme take?")

    assert "Wool 0 h 45" in found.text
    assert found.above == "Page 1"
