"""The retriever, the ranker and top-p of a file and of a program, against a small web here."""

import json
from pathlib import Path

import pytest

import babyagi
from babyagi.agent import Agent
from babyagi.errors import SettingsError
from babyagi.llm.prompt import Speaker, ToolCall
from support.scripted import ScriptedModel
from tests.web_server import Reply, WebServer

FILE = """
version: ignore
components:
  - {name: Node, type: PromptNode}
  - {name: Web, type: WebRetriever, params: {search_engine_provider: SerpAPI, api_key: K%(web)s}}
  - {name: Best, type: Ranker, params: {top_k: 2}}
  - {name: Enough, type: TopPSampler, params: {top_p: %(p)s%(least)s}}
pipelines:
  - name: web
    nodes: [%(nodes)s]
agents:
  - name: one
    params:
      prompt_node: Node
      tools: [{name: Try, pipeline_or_node: %(target)s, description: searches the web}]
"""
RANKED = "{name: Web, inputs: [Query]}, {name: Best, inputs: [Web]}, {name: Enough, inputs: [Best]}"
MENU = "".join(f"<a href=/{n}>Entry number {n}</a>" for n in range(300))
BRIDGE = "<p>The swing bridge was opened in the year 1871.</p>" * 3


class Web:
    """A search with three results and their pages; the last one cannot be opened."""

    def __init__(self):
        self.opened = []

    async def __aenter__(self):
        self._server = WebServer(self._answer)
        await self._server.__aenter__()
        self.base_url = self._server.base_url
        return self

    async def __aexit__(self, *exc):
        await self._server.__aexit__(*exc)

    def _answer(self, asked):
        if asked.path.startswith("/search"):
            found = [
                ("Ferry", "/ferry", "Opened on Sundays."),
                ("Bridge", "/bridge", "When was the swing bridge opened? In 1871."),
                ("Gone", "/gone", "A swing bridge that was opened to nobody."),
            ]
            keys = {
                "organic": ("link", "snippet"),  # Serper
                "organic_results": ("link", "snippet"),  # SerpAPI
                "results": ("url", "content"),  # SearXNG
            }
            rows = {
                name: [
                    {"title": title, link: self.base_url + path, text: snippet}
                    for title, path, snippet in found
                ]
                for name, (link, text) in keys.items()
            }
            return Reply(rows)
        if asked.path == "/robots.txt":
            return None
        self.opened.append(asked.path)
        pages = {"/ferry": "<p>Cheap.</p>", "/bridge": f"<nav>{MENU}</nav>{BRIDGE}"}
        return Reply(pages[asked.path]) if asked.path in pages else Reply(status=404)


def asking(query="When was the swing bridge opened?"):
    def answer(prompt, role):
        if not any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return (ToolCall(id="c", name="Try", arguments=json.dumps({"query": query})),)
        return "done"

    return ScriptedModel(answer)


@pytest.fixture
async def web(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    async with Web() as server:
        host = server.base_url.removeprefix("http://")
        monkeypatch.setenv("BABYAGI_WEB_ALLOW", host)
        monkeypatch.setenv("BABYAGI_SEARCH", server.base_url)
        monkeypatch.setenv("WEB_PARAMS_BASE_URL", server.base_url)
        yield server


async def run_file(tmp_path, *, target="Web", more="", p=1.0, least="", nodes=RANKED):
    path = tmp_path / "agents.yaml"
    words = {"target": target, "web": more, "p": p, "least": least, "nodes": nodes}
    path.write_text(FILE % words, "utf-8")
    run = await Agent.from_yaml(path, model=asking(), protocol="native").run_async("?")
    (observation,) = run.steps[0].observations
    return observation.passage


async def test_a_retriever_of_a_file_gives_snippets_and_opens_nothing(tmp_path, web):
    found = await run_file(tmp_path)

    assert "When was the swing bridge opened? In 1871." in found.text and not web.opened
    assert found.text.startswith("1. Bridge") and found.sources == ("search:serpapi",)


@pytest.mark.system
@pytest.mark.parametrize("mode", ["preprocessed_documents", "raw_documents"])
async def test_a_retriever_of_a_file_gives_pages_with_their_origins(tmp_path, web, mode):
    found = await run_file(tmp_path, more=f", mode: {mode}, top_k: 2")

    bridge = found.text.index("opened in the year 1871")
    assert "Entry number" not in found.text[:bridge]
    assert "not opened" in found.text and "nobody" in found.text
    assert f"web:{web.base_url}/bridge" in found.sources and len(web.opened) == 3


async def test_a_ranker_and_top_p_choose_among_what_a_search_found(tmp_path, web):
    best = await run_file(tmp_path, target="web")
    fewest = await run_file(tmp_path, target="web", p=0.5)
    least = await run_file(tmp_path, target="web", p=0.5, least=", min_top_k: 2")

    assert best.text.count("http://") == least.text.count("http://") == 2
    assert fewest.text.count("http://") == 1 and fewest.text.startswith("1. Bridge")
    assert "search:serpapi" in best.sources and not web.opened


async def test_a_retriever_of_a_file_takes_a_share_of_relevance(tmp_path, web):
    assert (await run_file(tmp_path, more=", top_p: 0.5")).text.count("http://") == 1


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"more": ", mode: all"}, "mode must be 'snippets', 'raw_documents' or"),
        ({"p": 2}, "top_p must be less than or equal to 1"),
        ({"nodes": "{name: Best, inputs: [Query]}"}, "node 'Best' needs 'documents'"),
        ({"target": "Best"}, "agent 'Best' can be run"),
    ],
)
async def test_what_cannot_be_chosen_or_from_names_the_component(tmp_path, web, given, fault):
    with pytest.raises(SettingsError, match=fault):
        await run_file(tmp_path, **given)


class Newest:
    def score(self, question, texts):
        return [float("Ferry" in text) for text in texts]


async def test_a_program_has_the_retriever_as_a_tool_with_a_ranker_of_its_own(web):
    query = {"query": "When was the swing bridge opened?"}
    found = await babyagi.web_retriever(mode="snippets", top_p=0.5).run(query)
    other = await babyagi.web_retriever(mode="snippets", ranker=Newest()).run(query)

    assert found.text.startswith("1. Bridge") and found.text.count("http://") == 1
    assert other.text.startswith("1. Ferry") and other.text.count("http://") == 1


@pytest.mark.system
async def test_the_example_answers_from_pages_after_a_search_in_other_words(web, monkeypatch):
    monkeypatch.setenv("SERPER_API_KEY", "K")
    monkeypatch.setenv("PAGES_PARAMS_BASE_URL", web.base_url)
    better = {"query": "When was the swing bridge opened?"}

    def answer(prompt, role):
        if not prompt.tools:
            return json.dumps({"aligned": False, "input": better})
        found = [one.text for one in prompt.messages if one.speaker is Speaker.TOOL]
        if not found:
            return (ToolCall(id="c", name="Web", arguments='{"query": "zebra"}'),)
        return "In 1871." if "opened in the year 1871" in found[0] else "Nothing says it."

    file = Path(__file__).parents[2] / "examples" / "web_answers.yaml"
    run = await Agent.from_yaml(file, model=ScriptedModel(answer), protocol="native").run_async(
        "When was the swing bridge of Norvik opened?"
    )

    assert run.output == "In 1871."
    (observation,) = run.steps[0].observations
    assert f"web:{web.base_url}/bridge" in observation.passage.sources
