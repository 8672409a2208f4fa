"""The tools for the issues of a repository on GitHub: one searches them, the other makes a link
that opens the form for a new issue, already filled in.

Sources (read in November 2026): https://docs.github.com/en/rest/search/search for the API; for the
links, "about automation for issues and pull requests with query parameters" in GitHub's manual.
GitHub answers a link that is too long with 414. Some tokens can search only issues, or only pull
requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any
from urllib.parse import quote, urlsplit

from babyagi.errors import ToolError
from babyagi.net.addresses import Proxies, host_of
from babyagi.net.door import Request, ask_json, require_https
from babyagi.retrieval.engines import entries
from babyagi.tasks import Effect, Passage
from babyagi.text import clean, one_line, shorten
from babyagi.tools.base import Sink, Tool, takes, text_schema, texts_schema
from babyagi.tools.search import number

SEARCH_ISSUES = "search_issues"
ISSUE_LINK = "issue_link"
GITHUB_KEY = "GITHUB_TOKEN"
GITHUB_URL = "https://api.github.com"
NO_ISSUES = "Found no issue."
TOP_K = 10
MAX_QUERY_CHARS = 200  # GitHub takes 256, and qualifiers such as repo: are added
MAX_BODY_CHARS = 600  # of an issue that was found
MAX_TITLE_CHARS = 256  # of an issue on GitHub
MAX_LABELS = 10
MAX_LABEL_CHARS = 50
MAX_LABELS_CHARS = 1500  # of all labels in a link
MAX_LINK_CHARS = 8000  # a longer address is refused by GitHub
CUT = "\n\n[cut here: the rest does not fit into an address]"

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
# Qualifiers that say where to search. They are removed, because a model must not search elsewhere.
_PLACES = re.compile(
    r"\b(?:(?:repo|org|user|owner|visibility|enterprise)\s*:\s*(?:\"[^\"]*\"|\S*)"
    r"|is\s*:\s*(?:public|private|internal)\b)",
    re.IGNORECASE,
)
_KIND = re.compile(r"\bis:(?:issue|pr|pull-request)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"\b(?:OR|AND|NOT)\b|[()]")
_REPOSITORY_SCHEMA = text_schema("The repository, as owner/name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """GitHub, or a server that is compatible with it.

    Attributes:
        url: the address of its API.
        key: a token; '' for access to public data only.
        repository: the only repository to use, as `owner/name`; '' lets the model choose one.
    """

    url: str = GITHUB_URL
    key: str = field(default="", repr=False)
    repository: str = ""

    @property
    def pages_url(self) -> str:
        """Return the base address of the server's web pages, such as `https://github.com`."""
        parts = urlsplit(self.url)
        host = parts.netloc.removeprefix("api.") if self.url == GITHUB_URL else parts.netloc
        return f"{parts.scheme}://{host}"


def is_repository(text: str) -> bool:
    """Return whether the text has the form `owner/name`."""
    name = text.partition("/")[2]
    return bool(_REPOSITORY.fullmatch(text)) and name not in (".", "..")


def build_search_issues(
    github: GitHub,
    *,
    name: str = SEARCH_ISSUES,
    description: str = "",
    top_k: int = TOP_K,
    proxies: Proxies | None = None,
) -> Tool:
    """Return a tool that searches the issues of a repository, and gives the first `top_k`.

    Raises:
        SettingsError: the server's address is neither https nor on this machine.
        ValueError: `name` is not a valid name for a tool.
    """
    base_url = require_https(github.url)

    async def run(arguments: Mapping[str, Any]) -> Passage:
        repository = _find_repository(github, arguments)
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            **({"Authorization": f"Bearer {github.key}"} if github.key else {}),
        }
        request = Request(
            url=f"{base_url}/search/issues",
            params={
                "q": scope_query(arguments["query"], repository, is_given=bool(github.repository)),
                "per_page": str(top_k),
            },
            headers=headers,
            secret=github.key,
        )
        found = await ask_json(request, timeout_s=30.0, proxies=proxies)
        items = (one for one in entries(found.get("items")) if _line(one, "title"))
        listed = number(map(_render_issue, islice(items, top_k)))
        return Passage(
            text=listed or NO_ISSUES,
            origin=f"tool:{name}",
            sources=(f"search:github:{repository}",),
        )

    return Tool(
        name=name,
        description=description
        or f"Search the issues of {github.repository or 'a repository'} on GitHub, with is:pr its "
        "pull requests. Gives titles, addresses, states and the beginnings of the texts.",
        parameters=_with_repository(
            github, "query", query=text_schema("A few words, no sentence.")
        ),
        effect=Effect.READ,
        sink=Sink(host=host_of(base_url), sends=("query", "repository")),
        run=run,
        timeout_s=40.0,
    )


def scope_query(query: str, repository: str, *, is_given: bool) -> str:
    """Return a query for GitHub's search: the words of the model's query, limited to the
    repository.

    Args:
        is_given: whether a person has set the repository. If the model has chosen it, it must be
            public, so that the model cannot read private ones with the person's token.

    Raises:
        ToolError: no word is left of the query.
    """
    words = _OPERATORS.sub(" ", _PLACES.sub(" ", one_line(clean(query))))
    words = " ".join(words.replace('"', " ").split())[:MAX_QUERY_CHARS].strip()
    if not words:
        raise ToolError("there is nothing to search for: write a few words")
    kind = "" if _KIND.search(words) else " is:issue"
    return f"{words} repo:{repository}{kind}{'' if is_given else ' is:public'}"


def build_issue_link(
    github: GitHub,
    *,
    name: str = ISSUE_LINK,
    description: str = "",
    labels: Sequence[str] = (),
) -> Tool:
    """Return a tool that makes a link to the form for a new issue, already filled in. Nothing is
    sent: a person opens the link, reads the issue, and decides whether to submit it.

    Args:
        labels: the labels of each issue, besides those that the model chooses.

    Raises:
        ValueError: `name` is not a valid name for a tool.
    """

    async def run(arguments: Mapping[str, Any]) -> Passage:
        link = make_issue_link(
            f"{github.pages_url}/{_find_repository(github, arguments)}",
            title=arguments["title"],
            body=arguments.get("body", ""),
            labels=[*labels, *arguments.get("labels", ())],
        )
        return Passage(text=link, origin=f"tool:{name}")

    return Tool(
        name=name,
        description=description
        or "Make a link to a new GitHub issue that is already filled in, for the person to send. "
        "Use it when nothing else answers the question, and give the link in your answer.",
        parameters=_with_repository(
            github,
            "title",
            "body",
            title=text_schema("One line that says what is wrong or wanted."),
            body=text_schema("What was asked, and where the answer was looked for."),
            labels=texts_schema("Labels of the repository, such as question.", most=MAX_LABELS),
        ),
        effect=Effect.READ,
        run=run,
        max_output_chars=MAX_LINK_CHARS + 100,
    )


def make_issue_link(page: str, *, title: str, body: str, labels: Sequence[str] = ()) -> str:
    """Return a link to the form for a new issue, filled in with these fields. A body that does not
    fit into the link is cut.

    Args:
        page: the address of the repository's page, such as `https://github.com/owner/name`.

    Raises:
        ToolError: the title is blank.
    """
    heading = shorten(one_line(clean(title)), MAX_TITLE_CHARS)
    if not heading:
        raise ToolError("an issue needs a title")
    words = dict.fromkeys(
        one_line(clean(label)).replace(",", " ").strip()[:MAX_LABEL_CHARS] for label in labels
    )
    named = ",".join([word for word in words if word][:MAX_LABELS])
    end = f"&labels={_encode_within(named, MAX_LABELS_CHARS, cut='')}" if named else ""
    start = f"{page}/issues/new?title={_encode(heading)}&body="
    room = MAX_LINK_CHARS - len(start + end) - len("%2E")
    link = start + _encode_within(clean(body).strip(), room) + end
    # a full stop after an address would be read as the end of a sentence
    return f"{link[:-1]}%2E" if link.endswith(".") else link


def _encode(text: str) -> str:
    return quote(text, safe="")


def _encode_within(text: str, max_chars: int, *, cut: str = CUT) -> str:
    """Return the text, encoded for a URL. If it is longer than `max_chars`, return as much of its
    beginning as fits, followed by `cut`, both encoded."""
    if len(text) <= max_chars and len(whole := _encode(text)) <= max_chars:
        return whole
    sizes = accumulate(len(_encode(one)) for one in text[:max_chars])
    n_kept = sum(size <= max_chars - len(_encode(cut)) for size in sizes)
    return _encode(text[:n_kept] + cut)


# -- the repository, and the text for the model
# --------------------------------------------------------------------------------------------------


def _with_repository(github: GitHub, *required: str, **properties: Any) -> Mapping[str, Any]:
    """Return the `parameters` of a tool with these properties, and if the settings name no
    repository, with the required property `repository`."""
    if github.repository:
        return takes(*required, **properties)
    return takes(*required, "repository", **properties, repository=_REPOSITORY_SCHEMA)


def _find_repository(github: GitHub, arguments: Mapping[str, Any]) -> str:
    repository: str = github.repository or arguments.get("repository", "").strip()
    if not is_repository(repository):
        raise ToolError("repository must be owner/name, such as deepset-ai/haystack")
    return repository


def _render_issue(issue: Mapping[str, Any]) -> str:
    kind = "pull request" if isinstance(issue.get("pull_request"), dict) else "issue"
    labels = [_line(label, "name") for label in entries(issue.get("labels"))]
    said = [kind, _line(issue, "state"), *filter(None, labels[:MAX_LABELS])]
    lines = (
        _line(issue, "title"),
        _line(issue, "html_url"),
        ", ".join(filter(None, said)),
        shorten(_line(issue, "body"), MAX_BODY_CHARS),
    )
    return "\n".join(filter(None, lines))


def _line(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return one_line(clean(value[:20_000]))[:2000] if isinstance(value, str) else ""
