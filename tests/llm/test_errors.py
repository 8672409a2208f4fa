import httpx2
import pytest

from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    ModelRejectedError,
    ModelUnavailableError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.errors import (
    MAX_WHY_CHARS,
    ModelAddress,
    build_refusal,
    check_model_name,
    judge,
    read_refusal,
    say_why,
    translate,
)

PLACE = ModelAddress(model="some-model", url="http://here/v1", secret="top-secret-key")
BEFORE_A_BYTE_IS_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}
ADDRESS = {"UnsupportedProtocol", "LocalProtocolError"}


def descend(kind):
    yield kind
    for child in kind.__subclasses__():
        yield from descend(child)


HTTP_ERRORS = sorted(set(descend(httpx2.RequestError)), key=lambda kind: kind.__name__)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (400, RequestRefusedError),
        (401, CredentialsError),
        (403, ModelRejectedError),
        (404, ModelRejectedError),
        (409, ModelUnavailableError),
        (418, RequestRefusedError),
        (422, RequestRefusedError),
        (429, ModelUnavailableError),
        (500, ModelUnavailableError),
    ],
)
def test_every_status_has_a_meaning_here(status, wanted):
    assert type(judge(read_refusal(status, {}, b"boom"), PLACE)) is wanted


@pytest.mark.parametrize("kind", HTTP_ERRORS, ids=lambda kind: kind.__name__)
def test_only_what_failed_before_a_byte_was_sent_is_surely_not_billed(kind):
    meaning = translate(kind("boom"), PLACE)

    if kind.__name__ in ADDRESS:
        assert isinstance(meaning, ModelRejectedError)
    else:
        assert isinstance(meaning, ModelUnavailableError)
        assert meaning.may_be_billed is (kind.__name__ not in BEFORE_A_BYTE_IS_SENT)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry.ollama.ai/library/gemma:latest does not support tools"),
        (
            400,
            (
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to '
                "be set"
            ),
        ),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (404, "No endpoints found that support tool use. Try another model."),
        (500, "Unsupported param: tools"),
        (500, "tools param requires --jinja flag"),
    ],
)
def test_a_model_without_tools_is_known_by_the_words_of_every_server(status, words):
    error = judge(build_refusal(status, {"error": {"message": words}}), PLACE)

    assert type(error) is ToolsUnsupportedError


def test_a_server_that_is_down_says_nothing_about_tools():
    refusal = build_refusal(
        503, {"error": {"message": "tools are not supported while we are down"}}
    )

    assert type(judge(refusal, PLACE)) is ModelUnavailableError


def test_a_certificate_that_is_refused_needs_a_person():
    error = httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed")

    said = translate(error, PLACE)

    assert isinstance(said, ModelRejectedError) and "certificate" in said.what
    assert "SSL_CERT_FILE" in (said.fix or "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"no"',
        b'{"error": "no"}',
        b'{"error": {"message": {"a": 1}, "code": [1]}}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"<<<<",
    ],
)
def test_a_body_of_any_shape_can_be_judged(body):
    assert isinstance(judge(read_refusal(400, {}, body), PLACE), BabyagiError)


def test_the_endpoints_words_are_shown_short_and_without_a_key():
    words = (
        "Incorrect API key provided: top-secret-key and sk-abcdef1234567890 \x1b[2J refused\n"
        + "x" * 1000
    )

    shown = say_why(words, PLACE)

    assert shown.startswith("Incorrect API key provided: *** and *** ")
    assert "abcdef" not in shown and "\x1b" not in shown and "\n" not in shown
    assert len(shown) == MAX_WHY_CHARS


def test_a_shut_down_model_is_named_with_its_successor():
    refusal = build_refusal(
        404, {"error": {"code": "model_not_found", "message": "The model does not exist"}}
    )

    error = judge(
        refusal, ModelAddress(model="gpt-3.5-turbo", url="https://api.openai.com/v1", secret="")
    )

    assert "gpt-6-luna" in error.fix
    with pytest.raises(ModelRejectedError):
        check_model_name("text-davinci-003")
    check_model_name("gpt-6-luna")


@pytest.mark.parametrize(
    "spelled",
    [
        "sk-abc%2Fdef%2Bghi0123",
        "sk-abc%252Fdef%252Bghi0123",
        "sk-abc/def+ghi0123",
        "sk-abc%2fdef%2bghi0123",
    ],
)
def test_where_a_redirect_leads_shows_no_part_of_the_key(spelled):
    address = ModelAddress(model="some-model", url="http://here/v1", secret="sk-abc/def+ghi0123")

    for location in (
        f"https://there/login?next=%2Fv1&key={spelled}",
        f"/v1/{spelled}/x",
        f"https://{spelled}@there/",
    ):
        error = judge(read_refusal(307, {"location": location}, b""), address)
        assert not any(piece in error.why for piece in ("abc", "def", "ghi", "0123"))


def test_an_ordinary_word_that_begins_as_a_key_does_is_shown():
    assert (
        say_why("ask about sk-ating, sk-iing and risk-taking", PLACE)
        == "ask about sk-ating, sk-iing and risk-taking"
    )
