"""Everything outside of a person's machine, as one server on a socket: a proxy through which every
address of the world leads here, a search engine, issues, a pipeline, an MCP server and the address
for notifications. It keeps what arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import cycle, zip_longest
from typing import Any

from tests.web_server import Asked, Reply, WebServer


@dataclass
class Outside:
    """Attributes:
    pages: the text of each page, by host and path; another address is an empty page.
    moved: where a page leads, by host and path.
    hits, issues: the texts of what a search finds, one hit each.
    offered: the address of each hit.
    documents: what the pipeline answers.
    said: what the MCP server answers.
    described: how the MCP server describes its tool.
    arrived: each request, but those to the address for notifications, which the person named as
        their own and which a report is sent to: these are `told`.
    """

    pages: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    hits: Sequence[str] = ("A page about it.",)
    offered: Sequence[str] = ("http://news.example/today",)
    issues: str = "Nothing is wrong."
    documents: str = "Nothing is known."
    said: str = "Sent."
    described: str = "Sends a text."
    arrived: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = WebServer(self._answer)

    @property
    def url(self) -> str:
        return self.server.base_url

    def _answer(self, asked: Asked) -> Reply | None:
        if asked.path == "/mcp":
            return self._serve_tool(asked)
        if asked.path == "/notify":
            self.told.append(asked.body.decode("utf-8", "replace"))
            return Reply()
        body = asked.body.decode("utf-8", "replace")
        self.arrived.append(f"{asked.method} {asked.target} {body}".replace(self.url, ""))
        match asked.path:
            case "/robots.txt":
                return None
            case "/search":
                found = [
                    {"title": f"Hit {n}", "url": url, "content": text}
                    for n, (url, text) in enumerate(
                        zip(self.offered, cycle(self.hits), strict=False)
                    )
                ]
                return _as_json({"results": found})
            case "/search/issues":
                return _as_json({"items": [
                    {"title": "An issue", "html_url": "http://issues.example/1", "body": self.issues}
                ]})  # fmt: skip
            case "/query":
                return _as_json({"documents": [{"content": self.documents}]})
        place = asked.host + asked.path
        if place in self.moved:
            return Reply(status=302, headers={"location": self.moved[place]})
        text = self.pages.get(place, "There is nothing here.")
        return Reply(f"<title>A page</title><h1>A page</h1><p>{text}</p>")

    def _serve_tool(self, asked: Asked) -> Reply:
        """Answer as an MCP server with one tool, `send`."""
        request = json.loads(asked.body) if asked.body else {}
        match request.get("method"):
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "remote", "version": "1"},
                }
            case "tools/list":
                takes = {"text": {"type": "string"}, "more": {"type": "object"}}
                schema = {"type": "object", "properties": takes}
                tool = {"name": "send", "description": self.described, "inputSchema": schema}
                result = {"tools": [tool]}
            case "tools/call":
                self.arrived.append(f"send {json.dumps(request['params'])}")
                result = {"content": [{"type": "text", "text": self.said}]}
            case _:
                return Reply(status=202 if request else 405)
        return _as_json({"jsonrpc": "2.0", "id": request["id"], "result": result})


def _as_json(value: object) -> Reply:
    return Reply(value, content_type="application/json")


def count_bytes(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many bytes of what arrived depend on the secret, given what arrived in two runs
    that differ in nothing else. It needs no knowledge of how the secret was written."""
    return sum(_differing(ours, theirs) for ours, theirs in zip_longest(one, other, fillvalue=""))


def _differing(ours: str, theirs: str) -> int:
    if ours == theirs:
        return 0
    pairs: Iterator[tuple[str, int, int, int, int]] = iter(
        SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    )
    return sum(
        max(len(ours[a:b].encode()), len(theirs[c:d].encode()))
        for kind, a, b, c, d in pairs
        if kind != "equal"
    )
