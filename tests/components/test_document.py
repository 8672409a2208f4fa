"""Files of agents that are wrong: each is one error that names the file, the culprit, and what to
do."""

import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from babyagi.agent import Agent
from babyagi.components.document import MAX_FILE_BYTES
from babyagi.errors import SettingsError

FILE = Path(__file__).parent.parent / "data" / "agents.haystack.yaml"
GOOD = """
version: ignore
components:
  - {name: Node, type: PromptNode, params: {model_name_or_path: rehearsal}}
  - {name: Ask, type: PromptNode, params: {default_prompt_template: Words}}
  - {name: Words, type: PromptTemplate, params: {prompt_text: "Say $query"}}
  - {name: Run, type: PythonRuntime}
pipelines:
  - name: line
    nodes:
      - {name: Ask, inputs: [Query]}
      - {name: Run, inputs: [Ask]}
agents:
  - name: one
    params:
      prompt_node: Node
      tools:
        - {name: Try, pipeline_or_node: line, description: computes}
"""
TOOL = "{name: Try, pipeline_or_node: line, description: computes}"
NODES = "      - {name: Ask, inputs: [Query]}\n      - {name: Run, inputs: [Ask]}\n"


def write(tmp_path, text):
    path = tmp_path / "agents.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_the_seed_file_loads_and_a_good_one_loads_with_unused_components(tmp_path):
    agent = Agent.from_yaml(FILE)

    assert [tool.name for tool in agent.tools] == ["Search", "Calculator"]
    assert [tool.effect for tool in agent.tools] == ["read", "read"]
    assert Agent.from_yaml(
        write(
            tmp_path,
            changed("- {name: Run", "- {name: Unused, type: PythonRuntime}\n  - {name: Run"),
        )
    ).tools


def test_the_example_of_a_documentation_loads(monkeypatch):
    for name in ("DEEPSET_CLOUD_API_KEY", "SERPER_API_KEY"):
        monkeypatch.setenv(name, "key")

    agent = Agent.from_yaml(FILE.parents[2] / "examples" / "documentation.yaml")

    assert [tool.name for tool in agent.tools] == ["Docs", "Web", "Issues", "IssueLink"]
    assert {tool.effect for tool in agent.tools} == {"read"}


def test_the_example_of_the_documents_loads(tmp_path, monkeypatch):
    (example,) = re.findall(
        r"```yaml\n(.*?)```",
        (FILE.parents[2] / "docs" / "agents.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    for name in re.findall(r"\$\{(\w+_KEY)\}", example):
        monkeypatch.setenv(name, "key")

    agent = Agent.from_yaml(write(tmp_path, example), "researcher")

    assert [(tool.name, tool.reflect) for tool in agent.tools] == [("Search", 1), ("Calculator", 0)]
    assert agent.bounds.max_steps == 6


FAULTS = {
    "empty": ("", "is not a mapping"),
    "a list": ("- a\n- b", "is not a mapping"),
    "a word": ("hello", "is not a mapping"),
    "two documents": (GOOD + "---\nb: 1", "not YAML"),
    "not YAML": ("a: [1, 2", "line 1: not YAML"),
    "a tab": ("a:\n\t- b", "line 2: not YAML"),
    "no version": (changed("version: ignore", ""), "no version"),
    "no components": (
        re.sub(r"components:.*?(?=pipelines:)", "", GOOD, flags=re.DOTALL),
        "has no components",
    ),
    "components that are no list": (
        "version: 1\ncomponents: {a: b}\nagents: []",
        "components must be a list",
    ),
    "no agents": (re.sub(r"agents:.*", "", GOOD, flags=re.DOTALL), "has no agents"),
    "no agent among them": (
        re.sub(r"agents:.*", "agents: []", GOOD, flags=re.DOTALL),
        "agents must be a list with at least one",
    ),
    "an unknown key at the top": (GOOD + "pipeline: []", "unknown key 'pipeline'"),
    "an unknown key of a component": (
        changed("type: PythonRuntime", "type: PythonRuntime, parms: {}"),
        "component 'Run' has the unknown key 'parms'",
    ),
    "an unknown parameter": (
        changed("type: PythonRuntime", "type: PythonRuntime, params: {x: 1}"),
        "'Run' has the unknown key 'x'",
    ),
    "an unknown kind": (
        changed("type: PythonRuntime", "type: FAISSDocumentStore"),
        "'Run' is of the unknown type 'FAISSDocumentStore'",
    ),
    "a component without a name": (changed("name: Run, ", ""), "component 4 has no name"),
    "a component without a type": (
        changed(", type: PythonRuntime", ""),
        "component 'Run' has no type",
    ),
    "a name that is a number": (
        changed("name: Run", "name: 12"),
        "name must be text",
    ),
    "a name that is a switch": (
        changed("name: Run", "name: yes"),
        "name must be text",
    ),
    "a name of two lines": (changed("name: Run", 'name: "a\\nb"'), "got 'a b'"),
    "a name that steers a terminal": (changed("name: Run", 'name: "a\\e[31mb"'), "got 'a�[31mb'"),
    "a name that is a list": (changed("name: Run", "name: [Run]"), "name must be text"),
    "a key that is no word": (
        changed("type: PythonRuntime", "type: PythonRuntime, 1: 2"),
        "line 7: each key must be a word",
    ),
    "a key that is a list": (
        changed("type: PythonRuntime", "[a]: 2"),
        "each key must be a word",
    ),
    "a key that stands twice": (
        changed("name: Run, ", "name: Run, name: Walk, "),
        "line 7: each key must be a word, and none may occur twice",
    ),
    "two of one name": (
        changed("name: Words, type", "name: Run, type"),
        "two entries with the name 'Run'",
    ),
    "a pipeline called as a component": (
        changed("name: line", "name: Run"),
        "two entries with the name 'Run'",
    ),
    "an agent called as a pipeline": (
        changed("name: one", "name: line"),
        "two entries with the name 'line'",
    ),
    "a node without a component": (
        changed("{name: Run, inputs", "{name: Fly, inputs"),
        "pipeline 'line': the node 'Fly' is not a component of the file that can be run",
    ),
    "a node that takes from nowhere": (
        changed("inputs: [Ask]", "inputs: [Ass]"),
        "nodes must take from Query or one another, but 'Run' takes from 'Ass'",
    ),
    "a node that cannot be run": (
        changed("name: Run, inputs", "name: Words, inputs"),
        "the node 'Words' is not a component of the file that can be run",
    ),
    "a node twice": (
        changed("{name: Run, inputs: [Ask]}", "{name: Ask, inputs: [Query]}"),
        "two entries with the name 'Ask'",
    ),
    "no root": (
        changed("inputs: [Query]", "inputs: [Run]"),
        "pipeline 'line': nodes must not form a cycle",
    ),
    "a node without inputs": (
        changed(", inputs: [Query]", ""),
        "pipeline 'line', node 'Ask' has no inputs",
    ),
    "the root of files": (
        changed("inputs: [Ask]", "inputs: [Ask, File]"),
        "pipeline 'line': nodes must take from Query or one another, but 'Run' takes from 'File'",
    ),
    "an empty list of inputs": (
        changed("inputs: [Ask]", "inputs: []"),
        "node 'Run': inputs must be a list with at least one entry",
    ),
    "a cycle": (
        changed("inputs: [Query]", "inputs: [Query, Run]"),
        "must not form a cycle: Ask → Run → Ask",
    ),
    "two ends": (
        changed("inputs: [Ask]", "inputs: [Query]"),
        "must end in one node, not in Ask, Run",
    ),
    "a node called as the root": (
        changed("{name: Ask, inputs", "{name: Query, inputs").replace("[Ask]", "[Query]"),
        "must not form a cycle: Query → Query",
    ),
    "no nodes": (
        changed(NODES, "").replace("nodes:", "nodes: []"),
        "nodes must be a list with at least one",
    ),
    "a template that wants too much": (
        changed("Say $query", "Say {documents}"),
        "node 'Ask' needs 'documents'",
    ),
    "a template that is not there": (
        changed("template: Words", "template: Word"),
        "'Word' is not a PromptTemplate of the file",
    ),
    "a template that is none": (
        changed("template: Words", "template: Run"),
        "'Run' is not a PromptTemplate of the file",
    ),
    "a model that is none": (
        changed("path: rehearsal", "path: Run"),
        "names 'Run', which is not a PromptModel",
    ),
    "too many stop words": (
        changed("path: rehearsal", "path: rehearsal, stop_words: [a, b, c]"),
        "stop_words must have at most 2 items",
    ),
    "stop words that are numbers": (
        changed("path: rehearsal", "path: rehearsal, stop_words: [1]"),
        "stop_word 1 must be text",
    ),
    "a variable that is none": (
        changed("{default", "{output_variable: a b, default"),
        "output_variable must be letters",
    ),
    "an agent without a node": (changed("prompt_node: Node", ""), "agent 'one' has no prompt_node"),
    "an agent with a node that is none": (
        changed("prompt_node: Node", "prompt_node: Run"),
        "prompt_node 'Run' is not a PromptNode",
    ),
    "a tool of nothing": (
        changed("node: line", "node: lime"),
        "tool 'Try': no component, pipeline or agent 'lime' can be run",
    ),
    "a tool of what cannot be run": (
        changed("node: line", "node: Words"),
        "tool 'Try': no component, pipeline or agent 'Words' can be run",
    ),
    "a tool without a description": (
        changed(", description: computes", ""),
        "agent 'one', tool 'Try' has no description",
    ),
    "a tool with an empty description": (
        changed("description: computes", "description: ''"),
        "description is empty",
    ),
    "a tool with a name that no model takes": (
        changed("name: Try", "name: Tr.y"),
        "a tool's name must have 1 to 64",
    ),
    "a tool twice": (changed(TOOL, f"{TOOL}\n        - {TOOL}"), "two entries with the name 'Try'"),
    "an output_variable that no node gives": (
        changed("description: computes", "description: a, output_variable: x"),
        "no node gives the output_variable 'x'",
    ),
    "a tool that thinks too often": (
        changed("description: computes", "description: a, reflect: 99"),
        "reflect must be less than or equal to 5",
    ),
    "a protocol that is none": (
        changed("prompt_node: Node", "prompt_node: Node\n      protocol: morse"),
        "protocol must be 'auto', 'native', 'json' or 'text'",
    ),
    "a bound that is none": (
        changed("prompt_node: Node", "prompt_node: Node\n      max_steps: many"),
        "max_steps must be a valid integer",
    ),
    "a bound that is a switch": (
        changed("prompt_node: Node", "prompt_node: Node\n      max_steps: yes"),
        "max_steps must be a number",
    ),
    "a bound below nothing": (
        changed("prompt_node: Node", "prompt_node: Node\n      max_steps: -1"),
        "max_steps must be greater than or equal to 0",
    ),
    "an end that is none": (
        changed("prompt_node: Node", "prompt_node: Node\n      at_limit: shout"),
        "at_limit must be 'force' or 'generate'",
    ),
    "a memory of no kind": (
        changed("prompt_node: Node", "prompt_node: Node\n      memory: {type: Elephant}"),
        "is of the unknown type 'Elephant'",
    ),
    "a memory that is a node": (
        changed("prompt_node: Node", "prompt_node: Node\n      memory: Node"),
        "'Node' is not a memory of the file",
    ),
    "a memory of the person's home": (
        changed(
            "prompt_node: Node",
            "prompt_node: Node\n      memory: {type: EntityMemory, params: {name: tea}}",
        ),
        "unknown key 'name'",
    ),
    "a memory that is never brought up to date": (
        changed(
            "prompt_node: Node",
            "prompt_node: Node\n      memory: {type: EntityMemory, params: {update_every: 0}}",
        ),
        "update_every must be 1 or more",
    ),
    "an MCP server": (
        changed("prompt_node: Node", "prompt_node: Node\n      mcp: [{command: [a]}]"),
        "agent 'one' has the unknown key 'mcp'",
    ),
    "a remote pipeline without an address": (
        changed("type: PythonRuntime", "type: HaystackPipeline"),
        "component 'Run' has no base_url",
    ),
    "a remote pipeline at an address of the file": (
        changed(
            "type: PythonRuntime",
            "type: HaystackPipeline, params: {base_url: 'http://127.0.0.1:8000'}",
        ),
        "would send each search and its key to '127.0.0.1:8000'",
    ),
    "a pipeline on deepset Cloud without a key": (
        changed(
            "type: PythonRuntime",
            "type: DeepsetCloudPipeline, params: {workspace: a, pipeline_name: b}",
        ),
        "component 'Run' has no api_key",
    ),
    "an effect that is none": (
        changed(
            "type: PythonRuntime",
            "type: DeepsetCloudPipeline, params: "
            "{workspace: a, pipeline_name: b, api_key: k, effect: harmless}",
        ),
        "effect must be 'read', 'idempotent' or 'once'",
    ),
    "a search that nobody runs": (
        changed(
            "type: PythonRuntime",
            "type: WebSearch, params: {search_engine_provider: Bing, api_key: k}",
        ),
        "search_engine_provider must be 'SerperDev', 'SerpAPI' or 'SearchApi'",
    ),
    "a repository that is none": (
        changed("type: PythonRuntime", "type: GitHubIssueSearch, params: {repository: haystack}"),
        "repository must be owner/name, as on GitHub, got 'haystack'",
    ),
    "a link in a pipeline": (
        changed("type: PythonRuntime", "type: IssueLink, params: {repository: a/b}"),
        "the node 'Run' is not a component of the file that can be run",
    ),
    "a template that is not built in": (
        changed("default_prompt_template: Words", "default_prompt_template: haiku"),
        "default_prompt_template 'haiku' is not a PromptTemplate of the file",
    ),
    "the template of agents in a pipeline": (
        changed("default_prompt_template: Words", "default_prompt_template: zero-shot-react"),
        "node 'Ask': the template 'zero-shot-react' is for agents",
    ),
    "a template without a text": (
        changed('params: {prompt_text: "Say $query"}', "params: {name: haiku}"),
        "component 'Words' has no prompt_text",
    ),
    "an agent's template with an unknown place": (
        changed("{model_name_or_path: rehearsal}", "{default_prompt_template: summarization}"),
        "agent 'one': the template 'summarization' needs 'documents'",
    ),
    "an agent's template with text behind the transcript": (
        changed("{model_name_or_path: rehearsal}", "{default_prompt_template: Talk}").replace(
            "- {name: Run, type",
            "- {name: Talk, type: PromptTemplate, "
            "params: {prompt_text: 'Q: $query {transcript} and go on'}}\n  - {name: Run, type",
        ),
        "has text after the placeholder of the transcript",
    ),
    "an agent's template in another protocol": (
        changed("{model_name_or_path: rehearsal}", "{default_prompt_template: Words}").replace(
            "prompt_node: Node", "prompt_node: Node\n      protocol: json"
        ),
        "is a whole prompt of the text protocol, but the agent has the protocol json",
    ),
    "an agent in itself": (
        changed("node: line", "node: one"),
        "agents use each other in a cycle: one → one",
    ),
    "python": (
        changed("PythonRuntime", '!!python/object/apply:os.system ["true"]'),
        "could not determine a constructor",
    ),
    "a python name": (
        changed("version: ignore", "version: !!python/name:os.system ''"),
        "could not determine a constructor",
    ),
    "a tag of its own": (
        changed("name: Run", "name: !evil Run"),
        "could not determine a constructor for the tag '!evil'",
    ),
    "a merge": ("a: &a {b: 1}\nversion:\n  <<: *a", "each key must be a word"),
    "a number that cannot be read": (f"version: {'9' * 5000}", "a value that cannot be read"),
    "a number for a float": ("version: 1:99:99.5e", "has no components"),
    "an alias of nothing": ("a: *b", "not YAML: found undefined alias"),
    "an alias": ("a: &a {b: [1, 2]}\nc: *a", "line 1: an alias stands for this value"),
    "an anchor in itself": ("a: &a [*a]", "may have no alias"),
    "a mapping in itself": ("a: &a {b: *a}", "may have no alias"),
    "deep": ("[" * 5000, "nested too deep"),
    "deep, but closed": ("a: " + "[" * 5000 + "]" * 5000, "nested too deep"),
    "control characters": ("a: \x00b", "not YAML"),
    "binary": (b"\x7fELF\xff\xfe\x00", "not YAML: invalid start byte"),
    "too long": (b"#" * (MAX_FILE_BYTES + 1), "is longer than"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_that_is_wrong_is_one_error_that_names_the_culprit(tmp_path, name):
    text, expected = FAULTS[name]

    with pytest.raises(SettingsError) as raised:
        Agent.from_yaml(write(tmp_path, text))

    assert raised.value.what.startswith("agents.yaml: ")
    assert expected in raised.value.what
    assert raised.value.fix
    assert "\n" not in raised.value.what + raised.value.fix
    assert len(raised.value.what) < 400


def test_a_path_that_is_no_file_of_text_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        Agent.from_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(SettingsError, match="is not a file"):
        Agent.from_yaml(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="is not a file"):
        Agent.from_yaml(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="the path is invalid"):
        Agent.from_yaml("a\0b")
    sparse = tmp_path / "large.yaml"
    with sparse.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(SettingsError, match="is longer than"):
        Agent.from_yaml(sparse)


def test_agents_are_chosen_by_their_names(tmp_path):
    second = (
        GOOD.replace("name: one", "name: two")
        .partition("agents:\n")[2]
        .replace("name: Try", "name: Other")
    )
    path = write(tmp_path, GOOD + second)

    assert [tool.name for tool in Agent.from_yaml(path, "two").tools] == ["Other"]
    with pytest.raises(SettingsError, match="describes 2 agents") as several:
        Agent.from_yaml(path)
    with pytest.raises(SettingsError, match="no agent 'three'") as unknown:
        Agent.from_yaml(path, "three")
    assert "one, two" in several.value.fix and "one, two" in unknown.value.fix


def test_a_version_that_is_not_ignored_is_said_in_the_log(tmp_path, caplog):
    Agent.from_yaml(write(tmp_path, changed("version: ignore", "version: 1.26")))

    assert "the version '1.26' of a file" in caplog.text


def test_the_nodes_of_a_pipeline_may_stand_in_any_order(tmp_path):
    swapped = "".join(reversed(NODES.splitlines(keepends=True)))

    assert Agent.from_yaml(write(tmp_path, changed(NODES, swapped))).tools


@pytest.mark.thorough
@settings(max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.text() | st.sampled_from(["name", "type", "params", "nodes", "inputs"]), inner
            )
        ),
        max_leaves=20,
    ),
    st.sampled_from(["version", "components", "pipelines", "agents"]),
    st.booleans(),
)
def test_whatever_a_file_holds_it_loads_or_is_one_clear_error(
    tmp_path_factory, value, key, is_inside
):
    document = {**yaml.safe_load(GOOD), key: [value] if is_inside else value}
    path = write(tmp_path_factory.mktemp("any"), yaml.safe_dump(document))

    try:
        Agent.from_yaml(path)
    except SettingsError as error:
        assert "\n" not in error.what
