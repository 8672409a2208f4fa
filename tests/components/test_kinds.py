"""Components: their keys, what the environment says about them, and the places of a template."""

import logging
import re

import pytest

from babyagi.components.document import Component
from babyagi.components.kinds import (
    KEY_VARIABLES,
    REACT_TEMPLATE,
    TEMPLATE_NAMES,
    PromptNode,
    PromptTemplate,
    WebSearch,
    find_template,
    read_kinds,
    reveal_key,
)
from babyagi.errors import SettingsError


def search(variables=(), **params):
    component = Component(name="My-Serp", type="SerpAPIComponent", params=params)
    found = read_kinds([component], dict(variables))["My-Serp"]
    assert isinstance(found, WebSearch)
    return found


def test_a_parameter_that_names_a_component_is_that_component():
    components = [
        Component(
            name="Node",
            type="PromptNode",
            params={"model_name_or_path": "Davinci", "default_prompt_template": "Words"},
        ),
        Component(
            name="Davinci",
            type="PromptModel",
            params={"model_name_or_path": "text-davinci-003", "api_key": "XYZ"},
        ),
        Component(name="Words", type="PromptTemplate", params={"prompt_text": "Say $query"}),
        Component(name="Bare", type="PromptNode", params={"model_name_or_path": "some-model"}),
        Component(name="Plain", type="PromptNode", params={}),
    ]

    kinds = read_kinds(components, {})

    node, bare, plain = (kinds[name] for name in ("Node", "Bare", "Plain"))
    assert (
        isinstance(node, PromptNode)
        and isinstance(bare, PromptNode)
        and isinstance(plain, PromptNode)
    )
    assert (
        node.model is kinds["Davinci"]
        and node.template is kinds["Words"]
        and node.output_variable == "results"
    )
    assert bare.model is not None and bare.model.model == "some-model"
    assert plain.model is None


def test_the_environment_goes_before_the_file_and_is_shown_as_stars(caplog):
    caplog.set_level(logging.INFO)

    found = search(
        {
            "MY_SERP_PARAMS_API_KEY": "other",
            "MY_SERP_PARAMS_TOP_K": "3",
            "SERP_PARAMS_API_KEY": "wrong",
        },
        api_key="XYZ",
    )

    assert (reveal_key(found.api_key, {}), found.top_k) == ("other", 3)
    assert "MY_SERP_PARAMS_API_KEY=***" in caplog.text and "other" not in caplog.text
    with pytest.raises(SettingsError, match="unknown key 'api_kei'"):
        search({"MY_SERP_PARAMS_API_KEI": "other"}, api_key="XYZ")


def test_a_key_may_be_in_a_variable_and_is_never_shown():
    found = search(api_key="${SERPAPI_API_KEY}")

    assert reveal_key(found.api_key, {"SERPAPI_API_KEY": " s3cret \n"}) == "s3cret"
    assert reveal_key(search(api_key="s3cret").api_key, {}) == "s3cret"
    assert "s3cret" not in repr(search(api_key="s3cret")) + repr(
        Component(name="a", type="b", params={"api_key": "s3cret"})
    )
    with pytest.raises(SettingsError, match="variable SERPAPI_API_KEY, which is not set"):
        reveal_key(found.api_key, {"SERPAPI_API_KEY": ""})
    for bad in ("s3cret two", "s3cret\x00", "s3crét"):
        with pytest.raises(SettingsError, match="one word of printable ASCII") as raised:
            reveal_key(search(api_key=bad).api_key, {})
        assert "s3cr" not in raised.value.what + raised.value.fix


@pytest.mark.parametrize(
    "variable",
    ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "HOME", "serpapi_api_key", "SERPAPI_API_KEY_2"],
)
def test_a_component_may_have_the_key_of_its_own_type_alone(variable):
    with pytest.raises(
        SettingsError,
        match=(
            f"'My-Serp' has an api_key that names {variable}, but only SERPAPI_API_KEY is allowed"
        ),
    ):
        search(api_key=f"${{{variable}}}")
    with pytest.raises(SettingsError, match=variable):
        search({"MY_SERP_PARAMS_API_KEY": f"${{{variable}}}"}, api_key="XYZ")


def test_a_host_of_the_files_choice_is_refused_unless_a_person_allows_it_or_says_it_themselves():
    params = {"api_key": "${SERPAPI_API_KEY}", "base_url": "https://search.example:8443/api"}
    component = Component(name="Serp", type="SerpAPIComponent", params=params)

    with pytest.raises(
        SettingsError, match="'Serp': base_url would send each search and its key to"
    ) as raised:
        read_kinds([component], {})
    assert (
        "'search.example:8443'" in raised.value.what
        and "--agent-hosts search.example:8443" in raised.value.fix
    )
    for hosts in (["search.example"], ["example:8443"], ["serpapi.com"]):
        with pytest.raises(SettingsError, match="would send"):
            read_kinds([component], {}, hosts=hosts)
    assert read_kinds([component], {}, hosts=["search.example:8443"])["Serp"]
    assert (
        search({"MY_SERP_PARAMS_BASE_URL": "https://mine.example"}, **params).base_url
        == "https://mine.example"
    )
    assert search(api_key="XYZ", base_url="https://SerpAPI.com/").top_k == 10


@pytest.mark.parametrize(
    "params",
    [{}, {"api_key": 12}, {"api_key": ""}, {"api_key": ["a"]}, {"api_key": "a", "top_k": -1}],
)
def test_a_search_without_a_usable_key_or_bound_is_refused(params):
    with pytest.raises(SettingsError, match="component 'My-Serp'"):
        search(**params)


TEXTS = {
    "Say $query.": "Say VALUE.",
    "Say {query}, ${query}": "Say VALUE, VALUE",
    "$$5 and $5 and {5} and {}": "$5 and $5 and {5} and {}",
    "{{query}} is written out": "{query} is written out",
    'like {"a": 1}': 'like {"a": 1}',
    "Say {join(query)}": "Say VALUE",
    "price in $": "price in $",
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_places_of_a_template_are_filled_and_all_else_stays(text):
    assert PromptTemplate(name="t", text=text).fill({"query": "VALUE"}) == TEXTS[text]


def test_a_value_is_put_in_as_it_is_and_not_filled_again():
    assert PromptTemplate(name="t", text="$a").fill({"a": r"$b {a} \1"}) == r"$b {a} \1"
    assert PromptTemplate(name="t", text="$a {b} ${a} {{c}}").variables == ("a", "b")


def test_every_kind_that_an_error_offers_is_one():
    with pytest.raises(SettingsError) as raised:
        read_kinds([Component(name="a", type="Fly", params={})], {})

    for kind in re.findall(r"[A-Z]\w+", raised.value.fix):
        with pytest.raises(SettingsError, match="unknown key"):
            read_kinds([Component(name="a", type=kind, params={"unknown_key_of_it": 1})], {})


KEYED = {
    "PromptModel": ("OPENAI_API_KEY", {"model_name_or_path": "m"}),
    "SerpAPIComponent": ("SERPAPI_API_KEY", {}),
    "WebSearch": ("SERPER_API_KEY", {}),
    "DeepsetCloudPipeline": ("DEEPSET_CLOUD_API_KEY", {"workspace": "w", "pipeline_name": "p"}),
    "GitHubIssueSearch": ("GITHUB_TOKEN", {"repository": "o/n"}),
}


def read_one(kind, **params):
    return read_kinds([Component(name="One", type=kind, params=params)], {})["One"]


@pytest.mark.parametrize("variable", KEY_VARIABLES)
@pytest.mark.parametrize("kind", KEYED)
def test_no_component_gets_at_the_key_of_another_type(kind, variable):
    own, params = KEYED[kind]

    if variable == own:
        found = read_one(kind, api_key=f"${{{variable}}}", **params)
        assert reveal_key(found.api_key, {own: "k"}) == "k"
    else:
        with pytest.raises(SettingsError, match=f"names {variable}, but only {own} is allowed"):
            read_one(kind, api_key=f"${{{variable}}}", **params)


@pytest.mark.parametrize("kind", [kind for kind in KEYED if kind != "PromptModel"])
def test_every_key_goes_to_its_providers_own_host_alone(kind):
    own, params = KEYED[kind]

    with pytest.raises(SettingsError, match=r"send each search and its key to 'evil\.example'"):
        read_one(kind, api_key=f"${{{own}}}", base_url="https://evil.example", **params)


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("SerperDev", "SERPER_API_KEY"),
        ("SerpAPI", "SERPAPI_API_KEY"),
        ("SearchApi", "SEARCHAPI_API_KEY"),
    ],
)
def test_each_provider_of_a_search_has_its_own_key_and_address(provider, variable):
    found = read_one(
        "WebSearch",
        search_engine_provider=provider,
        api_key=f"${{{variable}}}",
        allowed_domains=["docs.example"],
    )

    assert (found.base_url, found.domains) == ("", ("docs.example",))


@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_every_built_in_template_has_places_and_can_be_named_in_both_ways(name):
    template = find_template(name)

    assert template is not None and template == find_template(f"deepset/{name}")
    assert set(template.variables) <= {
        *("documents", "query", "answers", "options", "target_language", "chat_transcript")
    }
    assert "VALUE" in template.fill(dict.fromkeys(template.variables, "VALUE"))
    assert read_one("PromptTemplate", name=name).text == template.text
    assert read_one("PromptTemplate", prompt=f"deepset/{name}").text == template.text


def test_the_template_of_agents_is_the_text_protocol_and_others_are_not_there():
    react = find_template(REACT_TEMPLATE)

    assert react is not None and react.text == ""
    assert find_template("question-answering-per-page") is None and find_template("") is None


def test_values_of_the_file_take_the_places_of_a_template():
    found = read_one(
        "PromptTemplate",
        name="translation",
        values={"target_language": "German", "documents": "$query"},
    )

    assert found.variables == ("query",)
    assert "into German." in found.text
    assert read_one("PromptTemplate", prompt_text="$$a {{b}} $c", values={"c": "C"}).fill({}) == (
        "$a {b} C"
    )
