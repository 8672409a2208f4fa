import html
import json
import unicodedata
from urllib.parse import quote, quote_plus, unquote

import pytest

from babyagi.redaction import looks_like_key, redact, redact_url
from babyagi.text import UNSEEN

KEY = "sk-abc/def+ghi=jkl%0123456789"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        (
            "https://h/v1?api-version=2024-10-21&code=abc",
            "https://h/v1?api-version=2024-10-21&code=***",
        ),
        ("http://me:se/cret@host/v1", "http://me:***@host/v1"),
        ("http://me:se?cr#et@host/v1", "http://me:***@host/v1"),
        ("http://token-alone@host/v1", "http://***@host/v1"),
        ("https://h/services/T0/B0/abcDEFghi123jklMNO456pqr", "https://h/services/T0/B0/***"),
        ("https://h/v1/sk-abc%2Fdef%2Bghi0123456789", "https://h/v1/***"),
        ("http://h/v1?sk-abcdef123456", "http://h/v1?***"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://u:pa/ss@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?options=-c%20x%3Dy&passfile=/a&sslmode=require",
            "postgresql://h/db?options=***&passfile=***&sslmode=require",
        ),
        (
            "postgresql://h/db?SSLKEY=a;new_one=b&application_name=worker",
            "postgresql://h/db?SSLKEY=***&new_one=***&application_name=worker",
        ),
        ("http://[::1/v1", "http://***"),
        ("no address at all", "***"),
    ],
)
def test_an_address_shows_what_is_known_to_be_harmless(url, shown):
    assert redact_url(url) == shown


SPELLINGS = {
    "as it is": KEY,
    "encoded": quote(KEY, safe=""),
    "encoded in part": quote(KEY),
    "encoded in small letters": quote(KEY, safe="").lower().replace("sk-abc", "sk-abc"),
    "encoded twice": quote(quote(KEY, safe=""), safe=""),
    "as of a form": quote_plus(KEY),
    "as JSON": json.dumps(KEY).replace("/", "\\/"),
    "as JSON within JSON": json.dumps(json.dumps(KEY)),
    "a half of it": KEY[9:],
    "another half": KEY[:14],
    "as HTML": html.escape(KEY),
    "in capital letters": KEY.upper(),
    "a half in capital letters": KEY[:14].upper(),
    "as decimal entities": "".join(f"&#{ord(char)};" for char in KEY),
    "as hexadecimal entities": "".join(f"&#X{ord(char):04X}" for char in KEY),
    "as named entities": KEY.replace("/", "&sol;").replace("+", "&plus;").replace("=", "&equals;"),
    "as HTML within HTML": html.escape(html.escape("".join(f"&#{ord(char)};" for char in KEY))),
    "as entities in an address": quote("".join(f"&#{ord(char)};" for char in KEY), safe=""),
    "as code points in JSON": "".join(f"\\u{ord(char):04X}" for char in KEY),
    "as an address in JSON in HTML": html.escape(json.dumps(quote(KEY, safe="/"))),
    "with invisible characters": "\u200b".join(KEY),
    "with soft hyphens and marks": "\u00ad\u200f\ufe0f".join(KEY),
    "with invisible characters, encoded": quote("\u2060".join(KEY), safe=""),
    "with invisible characters as entities": "&#8203;".join(KEY),
    "with null bytes": "\0".join(KEY),
    "over several lines": "\r\n".join(KEY[at : at + 7] for at in range(0, len(KEY), 7)),
    "in wide letters": "".join(chr(ord(char) + 0xFEE0) for char in KEY),
}


@pytest.mark.parametrize("written", SPELLINGS.values(), ids=SPELLINGS)
def test_a_known_key_is_hidden_in_every_spelling(written):
    shown = redact(
        f"it redirects to https://h/x?k={written}&y=1 and says {written} to us", secrets=[KEY]
    )

    read = unicodedata.normalize("NFKC", UNSEEN.sub("", html.unescape(unquote(shown)))).lower()
    assert not any(piece in read for piece in ("sk-a", "def", "ghi", "0123", "jkl"))
    assert shown.startswith("it redirects to https://h/x") and shown.endswith(" to us")


@pytest.mark.parametrize("key", ["geheim-ÄÖ-7", "пароль-42", "a\\nb%41c&amp;d", 'quote"d\\\\key'])
@pytest.mark.parametrize(
    "write", [str, str.upper, json.dumps, quote, html.escape], ids=lambda write: write.__name__
)
def test_a_key_of_any_characters_is_hidden_and_its_neighbours_are_not(key, write):
    assert redact(f"имя{write(key).strip(chr(34))}имя", secrets=[key]) == "имя***имя"


@pytest.mark.parametrize(
    "key",
    [
        *(
            "sk-proj-abcdEFGH1234567890",
            "sk-ant-api03-AbCdEfGh12345678",
            "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
            "sk-abc12***6789",
        ),
        *(
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "github_pat_11ABCDEFG0abcdefghij_xyz",
            "hf_AbCdEfGhIjKlMnOpQrStUvWxYz",
        ),
        *(
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
            "xoxb-123456789012-abcdefGHIJ",
            "gsk_AbCd1234EfGh5678",
        ),
        *(
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
            "0123456789abcdef0123456789abcdef",
        ),
    ],
)
def test_a_word_that_looks_like_a_key_is_hidden(key):
    assert redact(f"Incorrect API key provided: {key}, see there") in (
        "Incorrect API key provided: ***, see there",
    )


@pytest.mark.parametrize(
    "text",
    [
        (
            "sk-ating and sk-ating-rink-opening-hours-2026 and sk-learn-1.5, task-runner, "
            "ask-me-anything"
        ),
        "model gpt-5.5-2026-11-01-preview at http://127.0.0.1:1/v1 takes max_tokens=4096",
        'password: required, token: expired, password authentication failed for user "me"',
        "Bearer authentication failed, the bearer arrived",
        (
            'File "/usr/lib/python3.11/site-packages/SomePackage/taskstore/sqlite.py", line '
            "20, in _open_private"
        ),
        "a rather-long-hyphenated-expression-without-any-secret stays, ÄÖÜ日本 too",
        "request 3f2b8c1e-9d4a-4f6b-8e2d-1a2b3c4d5e6f took 12.5 s",
        "KeyError: 'key', secret=None, keyboard-interrupt",
    ],
)
def test_ordinary_words_are_left_alone(text):
    assert redact(text, secrets=["", "x", KEY]) == text


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "PASSWORD: hunter-2",
        '{"api_key": "hunter"}',
        "OPENAI_API_KEY='hunter2'",
        "my_token=hunter2&x=1",
        "Authorization: Basic aHVudGVyMjpodW50ZXIy",
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_hidden(text):
    assert "unter" not in redact(text) and "***" in redact(text)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "x-" * 100_000,
        "a://" * 50_000,
        "sk-" * 60_000,
        "%25" * 60_000,
        "password=" * 20_000,
        "-----BEGIN " * 20_000,
        "%25" * 60_000 + "41",
        "%" + "25" * 60_000,
        "\\" * 100_000,
        "&amp;" * 40_000,
        "&" + "amp;" * 40_000,
        "\u200b" * 100_000,
        KEY * 5_000,
    ],
)
def test_a_long_text_is_read_in_a_bounded_number_of_steps(text):
    redact(text, secrets=[KEY])  # the time of the suite is the bound: a quadratic one takes hours


def test_an_ordinary_word_is_no_key():
    assert not any(
        map(
            looks_like_key,
            ("internationalization", "0000", "deadbeef", "SomeClassName", "v1.2.3-rc1+build.5"),
        )
    )
