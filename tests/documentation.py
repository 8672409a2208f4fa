"""A question that nothing answers: documents, the web and issues are looked through in this order,
and a link to a new issue is what is left. The services and the model, on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.llm.prompt import ToolCall
from babyagi.tools.issues import make_issue_link
from support.local_server import Answer
from support.local_server.dialects import ChatRequest
from tests.web_server import Asked, Reply

QUESTION = "How do I pause a node between retries?"
REPOSITORY = "deepset-ai/haystack"
TITLE = "Pause between retries & backoff?"
BODY = "Asked: how to pause a node.\nLooked into: documents, the web, issues."
NOTHING = "Found nothing in the indexed documents. Will continue with web search."
CONCLUSION = "The pause of a node between retries stands in no document, page or issue."
_OBSERVED = re.compile(r"<<(?:observation|error) ")


def link(*labels: str) -> str:
    return make_issue_link(
        f"https://github.com/{REPOSITORY}", title=TITLE, body=BODY, labels=labels
    )


@dataclass(frozen=True)
class Names:
    """What the tools are called."""

    docs: str
    web: str
    issues: str
    link: str


IN_A_FILE = Names(docs="Docs", web="Web", issues="Issues", link="IssueLink")
IN_THE_LOOP = Names(
    docs="ask_pipeline", web="web_search", issues="search_issues", link="issue_link"
)

EMPTY: Mapping[str, Any] = {
    "serper": {"organic": [], "answerBox": None},
    "serpapi": {"organic_results": [], "search_metadata": {"status": "Success"}},
    "searchapi": {"organic_results": [], "search_metadata": {"status": "Success"}},
    "deepset": {"results": [{"query": QUESTION, "answers": [], "documents": []}]},
    "haystack": {"query": QUESTION, "answers": [], "documents": []},
    "github": {"total_count": 0, "incomplete_results": False, "items": []},
}
_SERVICE_BY_PATH: Sequence[tuple[str, str]] = (
    (r"POST /search", "serper"),
    (r"GET /search\.json", "serpapi"),
    (r"GET /api/v1/search", "searchapi"),
    (r"POST /workspaces/[^/]+/pipelines/[^/]+/search", "deepset"),
    (r"POST /query", "haystack"),
    (r"GET /search/issues", "github"),
)


def service_of(asked: Asked) -> str:
    """Which service a request is in the form of; empty for none."""
    line = f"{asked.method} {asked.path}"
    return next((name for path, name in _SERVICE_BY_PATH if re.fullmatch(path, line)), "")


def answer_empty(asked: Asked) -> Reply | None:
    """What each service says when it finds nothing."""
    name = service_of(asked)
    return Reply(EMPTY[name], content_type="application/json") if name else None


def question_of(asked: Asked) -> str:
    """What was looked for, wherever the form of the service has it."""
    fields = {**asked.params, **(json.loads(asked.body) if asked.body else {})}
    found = fields.get("q") or fields.get("query") or fields.get("queries", [""])[0]
    return str(found)


def speaking(
    protocol: str, names: Names, *labels: str, rephrases: bool
) -> Callable[[ChatRequest], Answer]:
    """A model that looks everywhere, then gives the link.

    Args:
        labels: that the tool adds by itself.
        rephrases: it is asked to judge its call of the documents, and puts it differently.
    """
    calls = (
        ("I look into the documents.", names.docs, {"query": "pause node"}),
        (NOTHING, names.web, {"query": "haystack pause node retries"}),
        ("Nothing on the web. I look among the issues.", names.issues, {"query": "pause retries"}),
        ("Nothing there. I make a link.", names.link, {"title": TITLE, "body": BODY}),
    )
    answer = f"{CONCLUSION}\nAsk for it here: {link(*labels)}"

    def say(request: ChatRequest) -> Answer:
        if rephrases and request.messages[0].text.startswith("You judge one call"):
            return Answer(text='{"aligned": false, "input": {"query": "pause between retries"}}')
        n = sum(len(_OBSERVED.findall(message.text)) for message in request.messages)
        if n < len(calls):
            return _say_call(protocol, n, *calls[n])
        return Answer(text=_say_answer(protocol, answer))

    return say


def _say_call(
    protocol: str, n: int, thought: str, name: str, arguments: Mapping[str, Any]
) -> Answer:
    written = json.dumps(arguments)
    match protocol:
        case "native":
            call = ToolCall(id=f"call_{n}", name=name, arguments=written)
            return Answer(text=thought, tool_calls=(call,))
        case "json":
            action = {"thought": thought, "tool": name, "tool_input": arguments}
            return Answer(text=json.dumps(action))
    return Answer(text=f"{thought}\nAction: {name}\nAction Input: {written}")


def _say_answer(protocol: str, answer: str) -> str:
    match protocol:
        case "native":
            return answer
        case "json":
            return json.dumps({"thought": "", "tool": "final_answer", "tool_input": answer})
    return f"I know.\nFinal Answer: {answer}"
