"""Documents first, then the web and the issues, else a link to an issue: from the command line,
with every service in its own form on a real socket, in every protocol."""

import json
from pathlib import Path

import pytest

from support.local_server import Answer, LocalServer, agreeing
from support.processes import ROOT, babyagi, environ
from tests.documentation import (
    CONCLUSION,
    IN_A_FILE,
    IN_THE_LOOP,
    NOTHING,
    QUESTION,
    REPOSITORY,
    answer_empty,
    link,
    question_of,
    service_of,
    speaking,
)
from tests.web_server import WebServer

pytestmark = pytest.mark.system

EXAMPLE = ROOT / "examples" / "documentation.yaml"
KEYS = {
    "OPENAI_API_KEY": "of-openai",
    "DEEPSET_CLOUD_API_KEY": "of-deepset",
    "SERPER_API_KEY": "of-serper",
    "SERPAPI_API_KEY": "of-serpapi",
    "SEARCHAPI_API_KEY": "of-searchapi",
    "GITHUB_TOKEN": "of-github",
}
PROVIDERS = {"serper": "SerperDev", "serpapi": "SerpAPI", "searchapi": "SearchApi"}
FORMS = pytest.mark.parametrize(
    ("protocol", "engine", "pipeline"),
    [
        ("native", "serper", "deepset"),
        ("json", "serpapi", "haystack"),
        ("text", "searchapi", "deepset"),
        ("text", "serper", "haystack"),
    ],
)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def write_file(folder: Path, protocol: str, engine: str, pipeline: str) -> Path:
    """The example, in a protocol, with other services where it says so."""
    text = EXAMPLE.read_text("utf-8").replace(
        "max_steps: 8", f"max_steps: 8\n      protocol: {protocol}"
    )
    text = text.replace("SerperDev", PROVIDERS[engine])
    text = text.replace("${SERPER_API_KEY}", f"${{{engine.upper()}_API_KEY}}")
    if pipeline == "haystack":
        before, _, rest = text.partition("    type: DeepsetCloudPipeline\n")
        text = f"{before}    type: HaystackPipeline\n{rest[rest.index('  - name: Search') :]}"
    path = folder / "documentation.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def secrets_of(asked):
    said = json.dumps([dict(asked.params), dict(asked.headers), asked.body.decode()])
    return {key for key in KEYS.values() if key in said}


@FORMS
async def test_a_file_looks_everywhere_and_ends_with_a_link(
    tmp_path, home, protocol, engine, pipeline
):
    say = speaking(protocol, IN_A_FILE, "question", rephrases=True)
    file = write_file(tmp_path, protocol, engine, pipeline)
    async with LocalServer(say) as model, WebServer(answer_empty) as services:
        urls = {
            f"{name}_PARAMS_BASE_URL": services.base_url
            for name in ("DOCUMENTS", "SEARCH", "ISSUESEARCH")
        }
        env = environ(home, model.base_url, **KEYS, **urls)
        ended = await babyagi("ask", str(file), QUESTION, env=env)

    assert ended.code == 0, ended.said
    lines = ended.out.splitlines()
    assert [line.partition(":")[0] for line in lines if line[:1].isdigit()] == [
        "1. Docs",
        "2. Web",
        "3. Issues",
        "4. IssueLink",
    ]
    assert NOTHING in lines
    assert lines[-2:] == [CONCLUSION, f"Ask for it here: {link('question')}"]
    assert [(service_of(asked), question_of(asked)) for asked in services.asked] == [
        (pipeline, "pause node"),
        (pipeline, "pause between retries"),
        (engine, "haystack pause node retries"),
        ("github", f"pause retries repo:{REPOSITORY} is:issue"),
    ]
    assert [secrets_of(asked) for asked in services.asked] == [
        {"of-deepset"} if pipeline == "deepset" else set(),
        {"of-deepset"} if pipeline == "deepset" else set(),
        {f"of-{engine}"},
        set(),
    ]
    assert not any(key in ended.said for key in KEYS.values())


@FORMS
async def test_the_same_tools_in_a_run_end_with_a_report_that_has_the_link(
    home, protocol, engine, pipeline
):
    execute = speaking(protocol, IN_THE_LOOP, rephrases=False)

    @agreeing
    def say(request):
        match request.agent:
            case "execution":
                return execute(request)
            case "report":
                return Answer(text=f"{CONCLUSION} Ask for it here: <{link()}>")
        return Answer(text='{"tasks": [], "objective_met": true}')

    async with LocalServer(say) as model, WebServer(answer_empty) as services:
        at = {"deepset": "my/docs", "haystack": services.base_url}[pipeline]
        env = environ(
            home,
            model.base_url,
            **KEYS,
            LLM_MODEL="some-model",
            BABYAGI_MAX_COST_USD="0",
            BABYAGI_PROTOCOL=protocol,
            BABYAGI_SEARCH=engine,
            BABYAGI_PIPELINE=at,
            SUPPORT_DEFAULTS=f"search_url={services.base_url} deepset_cloud_url={services.base_url} "
            f"github_url={services.base_url} github_repository={REPOSITORY}",
        )
        ended = await babyagi(
            "run", QUESTION, "--tools", "ask_pipeline,web,github", "--task", QUESTION, env=env
        )

    assert ended.code == 0, ended.said
    assert [(service_of(asked), question_of(asked)) for asked in services.asked] == [
        (pipeline, "pause node"),
        (engine, "haystack pause node retries"),
        ("github", f"pause retries repo:{REPOSITORY} is:issue"),
    ]
    assert link() in ended.out
    assert not any(key in ended.said for key in KEYS.values())
