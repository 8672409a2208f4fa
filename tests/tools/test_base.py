"""The JSON that a model writes as arguments: accepted as far as its meaning is clear, else refused
with what to write."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyagi.errors import ToolError
from babyagi.llm.shapes import ShapeError, fit_schema, read_schema
from babyagi.react.protocols.base import describe_input
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, parse_arguments


async def run(arguments):
    return Passage(text=str(arguments), origin="tool:t")


def tool(properties, *required):
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name="t", description="", parameters=parameters, effect=Effect.READ, run=run)


READ = tool(
    {
        "path": {"type": "string"},
        "first_line": {"type": "integer", "minimum": 1, "maximum": 1000},
        "share": {"type": "number"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "deep": {"type": "object"},
        "is_on": {"type": "boolean"},
        "any": {},
    },
    "path",
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"path": "a.md"}', {"path": "a.md"}),
        ('{"path": "a.md", "first_line": "12"}', {"path": "a.md", "first_line": 12}),
        ('{"path": "a.md", "first_line": 12.0}', {"path": "a.md", "first_line": 12}),
        ('{"path": "a.md", "first_line": null}', {"path": "a.md"}),
        ('{"path": "a.md", "share": "0.5"}', {"path": "a.md", "share": 0.5}),
        (
            (
                '{"path": "a.md", "mode": "b", "tags": ["x"], "deep": {"y": [1]}, "is_on": '
                'true, "any": [1]}'
            ),
            {
                "path": "a.md",
                "mode": "b",
                "tags": ["x"],
                "deep": {"y": [1]},
                "is_on": True,
                "any": [1],
            },
        ),
        ('"a.md"', {"path": "a.md"}),
        ("docs/a.md", {"path": "docs/a.md"}),
        ('{"path": "two\nlines"}', {"path": "two\nlines"}),
    ],
)
def test_arguments_are_accepted_where_their_meaning_is_clear(text, arguments):
    assert parse_arguments(READ, text) == arguments


def test_empty_text_is_no_arguments_and_a_bare_value_is_the_only_parameter():
    one = tool({"pattern": {"type": "string"}})

    assert parse_arguments(one, "") == {}
    assert parse_arguments(one, " {} ") == {}
    assert parse_arguments(one, '"*.md"') == {"pattern": "*.md"}
    assert parse_arguments(tool({}), "") == {}
    assert parse_arguments(tool({}), "null") == {}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "",
            (
                '^t needs \'path\'; it takes a JSON object {"path": string, "first_line": '
                "integer \\(optional\\)"
            ),
        ),
        ('{"file": "a.md"}', "^t has no parameter 'file'; it takes"),
        ('{"path": 7}', "^'path' must be of type string, got 7$"),
        ('{"path": null}', "^'path' must be of type string, got null$"),
        ('{"path": "a", "first_line": 1.5}', "'first_line' must be of type integer, got 1.5"),
        ('{"path": "a", "first_line": "ten"}', "'first_line' must be of type integer"),
        ('{"path": "a", "first_line": true}', "'first_line' must be of type integer, got true"),
        ('{"path": "a", "first_line": NaN}', "not valid JSON"),
        ('{"path": "a", "first_line": 1e999}', "not valid JSON"),
        (
            '{"path": "a", "first_line": 0}',
            "'first_line' must be at least 1 and at most 1000, got 0",
        ),
        ('{"path": "a", "first_line": 1001}', "at most 1000"),
        ('{"path": "a", "share": NaN}', "not valid JSON"),
        ('{"path": "a", "share": "Infinity"}', "'share' must be of type number"),
        ('{"path": "a", "mode": "c"}', "'mode' must be one of 'a', 'b', got \"c\""),
        ('{"path": "a", "tags": "x"}', "'tags' must be of type array"),
        ('{"path": "a", "tags": ["x", 1]}', "'tags\\[1\\]' must be of type string"),
        ('{"path": "a", "tags": ["x", "y", "z"]}', "'tags' must not have more than 2 items, got 3"),
        ('{"path": "a", "is_on": "yes"}', "'is_on' must be of type boolean"),
        ('{"path": "a"', "not valid JSON; write a JSON object"),
        ('{"path": "a", "deep": ' + '{"a":' * 5000, "not valid JSON"),
        ('{"path": "a", "deep": ' + '{"a":' * 120 + "1" + "}" * 121, "not valid JSON"),
        ('{"path": "a", "first_line": ' + "9" * 5000 + "}", "not valid JSON"),
        (
            '{"path": "a", "first_line": "' + "9" * 5000 + '"}',
            "'first_line' must be of type integer",
        ),
        ('{"path": "' + "a" * 60_000 + '"}', "over 50000 characters"),
        ("[]", "'path' must be of type string"),
        ("null", "^the arguments of t must be a JSON object"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line_that_says_what_to_write(text, hint):
    with pytest.raises(ToolError, match=hint) as caught:
        parse_arguments(READ, text)

    assert "\n" not in caught.value.what
    assert len(caught.value.what) < 500


def test_a_bare_value_for_several_parameters_is_refused():
    with pytest.raises(ToolError, match="the arguments of t must be a JSON object"):
        parse_arguments(tool({"a": {}, "b": {}}), "7")


def test_null_is_no_value_for_the_only_parameter():
    with pytest.raises(ToolError, match="the arguments of t must be a JSON object"):
        parse_arguments(tool({"a": {}}), "null")


@settings(max_examples=250, derandomize=True)
@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    '{"',
                    '"',
                    ":",
                    "path",
                    "first_line",
                    "[",
                    "]",
                    "{",
                    "}",
                    "1",
                    "1e9",
                    "NaN",
                    ",",
                    "\\u",
                    " ",
                ]
            )
        ).map("".join),
    )
)
def test_no_text_raises_anything_but_a_tool_error(text):
    try:
        parse_arguments(READ, text)
    except ToolError as error:
        assert "\n" not in error.what


@pytest.mark.parametrize(
    "written",
    [
        '{"word": "a", "word": "b"}',
        '{"word": [NaN]}',
        '{"word": {"a": 1e999}}',
        '{"word": -Infinity}',
    ],
)
def test_what_could_be_read_in_two_ways_or_is_no_json_is_refused(written):
    with pytest.raises(ToolError, match="not valid JSON"):
        parse_arguments(tool({"word": {}}), written)


ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, True, False, 0, -1, 1.5, 10**400, 1e300, "", "string", "array", "object", [], ["null"],
     [5], {}, [[]], [True], [{"type": "null"}]]
)  # fmt: skip
KEYWORDS = ("type", "required", "enum", "format", "minimum", "maximum", "maxItems", "maxLength",
            "const", "default", "description", "not", "$ref")  # fmt: skip
SCHEMAS = st.recursive(
    ODD | st.dictionaries(st.sampled_from(KEYWORDS), ODD, max_size=3),
    lambda inner: st.builds(
        lambda plain, nested: {**plain, **nested},
        st.dictionaries(st.sampled_from(KEYWORDS), ODD, max_size=2),
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "array", "integer", "string"]),
                "properties": st.dictionaries(st.sampled_from(["x", "y"]), inner) | ODD,
                "items": inner,
                "anyOf": st.lists(inner, max_size=3) | ODD,
            },
        ),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(schema=SCHEMAS, argument=ODD)
def test_a_schema_from_outside_is_refused_or_can_be_described_sent_and_checked(schema, argument):
    try:
        parameters = read_schema({"type": "object", "properties": {"x": schema}})
    except ShapeError:
        return
    one = Tool(name="t", description="", parameters=parameters, effect=Effect.READ, run=run)

    describe_input(one)
    json.dumps(fit_schema(parameters, max_tokens=500), allow_nan=False)
    for written in ({"x": argument}, argument, {"z": 1}, {}):
        try:
            parse_arguments(one, json.dumps(written))
        except ToolError as error:
            assert "\n" not in error.what


def test_an_object_is_the_argument_of_the_only_parameter_that_takes_one():
    declared = tool({"prices": {"type": "object"}})

    assert parse_arguments(declared, '{"tea": 5}') == {"prices": {"tea": 5}}
    assert parse_arguments(declared, '{"prices": {"tea": 5}}') == {"prices": {"tea": 5}}
