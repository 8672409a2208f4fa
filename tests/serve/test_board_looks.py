"""How the board says things."""

from datetime import datetime, timedelta, timezone

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


def test_a_moment_is_said_in_one_zone_for_who_has_no_script():
    at = datetime(2026, 12, 1, 12, 0, 7, tzinfo=timezone(timedelta(hours=2)))

    assert say_moment(at) == ('<time datetime="2026-12-01T10:00:07Z">2026-12-01 10:00 UTC</time>')
    assert say_moment(None) == ""


def test_what_stands_in_backticks_is_code_and_the_rest_stays_text():
    assert mark_commands("wait for the <lease>") == "wait for the &lt;lease&gt;"
    assert mark_commands("type `a <b>`") == "type <code>a &lt;b&gt;</code>"
    assert say_advice("babyagi resume") == "In a terminal: babyagi resume"
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
