"""How the board says things."""

from datetime import UTC, datetime, timedelta

import pytest

from babyagi.serve.board import (
    mark_commands,
    mark_unseen,
    name_state,
    open_templates,
    say_advice,
    say_moment,
    say_sentence,
)
from babyagi.tasks import ObjectiveStatus, StopReason
from tests.cli import samples

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "just now"),
        (-3, "in a moment"),
        (50, "1 min ago"),
        (3_590, "1 h ago"),
        (-7_200, "in 2 h"),
        (90_000, "1 day ago"),
        (300_000, "3 days ago"),
    ],
)
def test_a_moment_is_said_by_its_age_and_holds_the_moment_itself(seconds, words):
    said = say_moment(NOW - timedelta(seconds=seconds), NOW)

    assert f">{words}</time>" in said
    assert f'datetime="{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}Z"' in said
    assert say_moment(None, NOW) == ""


def test_what_is_typed_is_code_and_the_rest_stays_text():
    said = mark_commands('babyagi inbox answer 4 "…"  (babyagi inbox shows <it>)')

    assert "<code>babyagi inbox answer 4 &#34;…&#34;</code>" in said
    assert "<code>babyagi inbox</code> shows &lt;it&gt;)" in said
    said = mark_commands("babyagi store rebuild --objective 1 --embedding-model NAME embeds again")
    assert said.startswith(
        "<code>babyagi store rebuild --objective 1 --embedding-model NAME</code>"
    )
    assert "<code>babyagi serve --files FOLDER</code>" in mark_commands(
        "babyagi serve --files FOLDER"
    )
    assert mark_commands("wait for the lease") == "wait for the lease"
    assert mark_commands("type `a <b>`") == "type <code>a &lt;b&gt;</code>"
    assert say_advice("babyagi resume") == "In a terminal: <code>babyagi resume</code>"
    assert say_advice("answer one") == "Answer one."


def test_a_sentence_has_a_capital_and_one_full_stop():
    assert say_sentence("it is paused") == "It is paused."
    assert say_sentence("it is done.") == "It is done."
    assert say_sentence("") == ""


def test_a_character_that_nobody_sees_is_shown_by_its_number():
    said = mark_unseen("a\u202e<b>\n\tx\x1b")

    assert said == "a<mark>U+202E</mark>&lt;b&gt;\n\tx<mark>U+001B</mark>"
    assert mark_unseen({"a": [1]}) == "{\n &#34;a&#34;: [\n  1\n ]\n}"


def test_no_template_has_a_text_that_is_not_made_harmless():
    text = open_templates().from_string("{{ one }}").render(one="<i>\u202e\x07")

    assert text.startswith("&lt;i&gt;")
    assert "\u202e" not in text
    assert "\x07" not in text


def test_a_state_is_a_sign_and_a_word_not_a_colour_alone():
    ended = {"status": ObjectiveStatus.ENDED, "ended_at": samples.at(9)}

    states = [
        name_state(samples.objective(**ended, stop_reason=reason))
        for reason in (StopReason.OBJECTIVE_MET, StopReason.LIMIT_COST, StopReason.FAILED)
    ]

    assert states == [
        ("done", "✓", "objective met"),
        ("waiting", "!", "limit of cost"),
        ("dead", "✕", "failed"),
    ]
