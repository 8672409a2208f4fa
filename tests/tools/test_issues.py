"""Issues on GitHub: what is asked, what is shown, and an address that opens as it was meant."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyagi.errors import SettingsError, ToolError
from babyagi.journal import run_tool
from babyagi.tasks import Effect
from babyagi.tools.base import Observation, parse_arguments
from babyagi.tools.issues import (
    CUT,
    MAX_LINK_CHARS,
    NO_ISSUES,
    GitHub,
    build_issue_link,
    build_search_issues,
    is_repository,
    make_issue_link,
    scope_query,
)
from tests.web_server import Reply, WebServer

KEY = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
PAGE = "https://github.com/owner/name"
ISSUES = {
    "total_count": 2,
    "incomplete_results": False,
    "items": [
        {
            "title": "Retriever\nreturns nothing",
            "html_url": f"{PAGE}/issues/7",
            "state": "open",
            "labels": [{"name": "bug"}, "junk"],
            "body": "It finds\x00 nothing. " * 200,
        },
        {"title": "Mend it", "html_url": f"{PAGE}/pull/8", "state": "closed", "pull_request": {}},
        "junk",
        {"title": 5, "html_url": None},
    ],
}


async def call(tool, **arguments):
    return await run_tool(tool, parse_arguments(tool, json.dumps(arguments)))


async def test_github_is_asked_in_its_own_form_within_one_repository():
    async with WebServer(lambda asked: Reply(ISSUES)) as server:
        github = GitHub(url=server.base_url, key=KEY, repository="owner/name")
        found = await call(build_search_issues(github, top_k=3), query="retriever empty")

    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/search/issues")
    assert dict(asked.params) == {"q": "retriever empty repo:owner/name is:issue", "per_page": "3"}
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["accept"] == "application/vnd.github+json"
    lines = found.passage.text.split("\n")
    assert lines[:3] == [
        "1. Retriever returns nothing",
        f"{PAGE}/issues/7",
        "issue, open, bug",
    ]
    assert len(lines[3]) <= 600 and lines[3].endswith("…")
    assert lines[5:] == ["2. Mend it", f"{PAGE}/pull/8", "pull request, closed"]
    assert found.passage.origins == ("tool:search_issues", "search:github:owner/name")


async def test_without_a_token_none_is_sent_and_the_model_names_a_public_repository():
    async with WebServer(lambda asked: Reply({"items": []})) as server:
        tool = build_search_issues(GitHub(url=server.base_url))
        found = await call(tool, query="x", repository="deepset-ai/haystack")
        refused = await call(tool, query="x", repository="a/b repo:secret/one")

    assert found.passage.text == NO_ISSUES
    assert server.asked[0].params["q"] == "x repo:deepset-ai/haystack is:issue is:public"
    assert "authorization" not in server.asked[0].headers
    assert refused.is_error and len(server.asked) == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("pipeline repo:other/secret", "pipeline"),
        ("pipeline REPO: other/secret org:x user:y", "pipeline"),
        ('a OR (repo:"o t/h" b)', "a b"),
        ("NOT a visibility:private is:private is:open label:bug", "a is:open label:bug"),
        ("the repository of repos", "the repository of repos"),
        ("a\nb\x00c", "a b\ufffdc"),
        ("w" * 500, "w" * 200),
    ],
)
def test_a_model_chooses_words_and_not_where_is_searched(query, words):
    assert scope_query(query, "o/n", is_given=True) == f"{words} repo:o/n is:issue"
    assert scope_query("a is:pr", "o/n", is_given=True) == "a is:pr repo:o/n"
    with pytest.raises(ToolError, match="few words"):
        scope_query("repo:other/secret OR", "o/n", is_given=True)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"message": f"Bad credentials {KEY}"}, status=401), "answered 401: Bad credentials"),
        (Reply({"message": "API rate limit exceeded"}, status=403), "403: API rate limit exceeded"),
        (Reply({"message": "Validation Failed"}, status=422), "422: Validation Failed"),
        (Reply(b"[]"), "not a JSON object"),
    ],
)
async def test_a_refusal_by_github_is_one_line_without_the_token(reply, said):
    async with WebServer(lambda asked: reply) as server:
        github = GitHub(url=server.base_url, key=KEY, repository="owner/name")
        found = await call(build_search_issues(github), query="x")

    assert found.is_error and said in found.passage.text
    assert KEY not in found.passage.text and KEY not in repr(github)


def read(link):
    parts = urlsplit(link)
    return f"{parts.scheme}://{parts.netloc}{parts.path}", dict(
        parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
    )


async def test_a_link_to_a_new_issue_is_filled_in_and_nothing_is_sent():
    tool = build_issue_link(GitHub(repository="owner/name"), labels=["from babyagi"])
    found = await call(
        tool, title="Where is B&C?", body="I looked\nin a+b = 100 %.", labels=["question", "a,b"]
    )

    assert tool.effect is Effect.READ
    assert read(found.passage.text) == (
        f"{PAGE}/issues/new",
        {
            "title": "Where is B&C?",
            "body": "I looked\nin a+b = 100 %.",
            "labels": "from babyagi,question,a b",
        },
    )
    assert "+" not in found.passage.text and " " not in found.passage.text


async def test_a_link_needs_a_title_and_a_repository():
    tool = build_issue_link(GitHub())
    assert (await call(tool, title=" ", body="b", repository="o/n")).is_error
    assert (await call(tool, title="t", body="b", repository="../x")).is_error
    other = await call(
        build_issue_link(GitHub(url="https://git.example/api/v3")),
        title="t",
        body="",
        repository="o/n",
    )
    assert isinstance(other, Observation)
    assert other.passage.text == "https://git.example/o/n/issues/new?title=t&body="


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    st.text(min_size=1).filter(lambda text: text.strip()),
    st.text(max_size=50)
    | st.sampled_from(["So it is.", "ä" * 9000, "😀" * 9000, "a" * 9000, "&=#%+ " * 2000]),
    st.lists(st.text(max_size=60) | st.just("😀" * 60), max_size=20),
)
def test_any_text_gives_an_address_that_is_bounded_and_reads_back(title, body, labels):
    try:
        link = make_issue_link(PAGE, title=title, body=body, labels=labels)
    except ToolError:
        return  # a title of nothing but control characters
    page, fields = read(link)

    assert len(link) <= MAX_LINK_CHARS and not link.endswith(".")
    assert link.isascii() and link.isprintable()
    assert page == f"{PAGE}/issues/new"
    assert set(fields) <= {"title", "body", "labels"} and fields["title"]
    if len(body) > 8000:
        assert fields["body"].endswith(CUT) and body.startswith(fields["body"].removesuffix(CUT))


@pytest.mark.parametrize("name", ["", "a", "a/b/c", "a/..", "/b", "a b/c", "-a/b", "a/b?x=1"])
def test_a_repository_is_an_owner_and_a_name(name):
    assert not is_repository(name)
    assert is_repository("deepset-ai/haystack.js")


def test_a_token_goes_only_where_nobody_reads_it_on_the_way():
    with pytest.raises(SettingsError):
        build_search_issues(GitHub(url="http://github.example", key=KEY))
