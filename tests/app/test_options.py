"""What can be given by name is what there is: the settings, and the bounds of an agent."""

import typing
from dataclasses import fields
from pathlib import Path

import pytest

from babyagi.app import options
from babyagi.app.options import OTHER_NAMES, AgentOptions, RunOptions, SettingOptions, names_of
from babyagi.llm.port import ChatModel
from babyagi.loop import Enrich
from babyagi.memory.kinds import ConversationMemory
from babyagi.react.steps import AgentBounds, AtLimit, OnMalformed, Trim
from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.values import Secret
from babyagi.tools.base import Tool

OWN = {*OTHER_NAMES, "new", "enrich"}
OF_THE_COMMAND_LINE = (  # a program has no use for them
    "objective cooperative_mode join_existing_objective log_file log_format no_color llama gpt_4 "
    "enable_command_line_args serve_host serve_port serve_names serve_token"
).split()
NAMES = {
    "ConversationMemory": ConversationMemory,
    "AtLimit": AtLimit,
    "ChatModel": ChatModel,
    "Enrich": Enrich,
    "OnMalformed": OnMalformed,
    "Secret": Secret,
    "Tool": Tool,
    "Trim": Trim,
}


def kinds_of(hint):
    """The classes that a value may have."""
    if typing.get_origin(hint) is typing.Literal:
        return {type(one) for one in typing.get_args(hint)}
    inner = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, type(int | str)):
        return set().union(*map(kinds_of, inner))
    origin = typing.get_origin(hint) or hint
    return {Path if origin is Path else origin}


def hints_of(kind):
    return typing.get_type_hints(kind, localns=NAMES)


def test_every_setting_that_a_program_can_use_is_an_option_of_a_run_and_nothing_else_is():
    assert set(names_of(RunOptions) | names_of(SettingOptions)) - OWN == set(
        declared_fields()
    ) - set(OF_THE_COMMAND_LINE)


def test_every_bound_is_an_option_of_an_agent():
    bounds = {field.name for field in fields(AgentBounds)}

    assert set(names_of(AgentOptions)) - bounds - names_of(SettingOptions) == {"memory"}
    assert bounds - names_of(AgentOptions) == set()


def test_an_option_takes_what_its_setting_holds():
    settings, taken = hints_of(Settings), hints_of(RunOptions)

    for name in (names_of(RunOptions) | names_of(SettingOptions)) - OWN - {"tools"}:
        held = kinds_of(settings[name])
        if tuple in held:
            continue  # a sequence is taken
        assert held <= kinds_of(taken[name]), name


def test_an_option_with_choices_names_them_all():
    taken = hints_of(RunOptions)

    for name, declared in declared_fields().items():
        if declared.choices and name in taken:
            assert set(typing.get_args(taken[name])) == set(declared.choices), name


def test_a_name_that_there_is_not_comes_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match="run has no option 'max_taks'; did you mean max_tasks"):
        options.require_known({"max_taks": 3}, names_of(RunOptions), "run")
    with pytest.raises(TypeError, match="did you mean output_type"):
        options.require_known({"output_tipe": int}, names_of(RunOptions), "run")
    with pytest.raises(TypeError, match=r"no option 'zzz'$"):
        options.require_known({"zzz": 3}, names_of(RunOptions), "run")


def test_two_names_of_one_setting_are_refused():
    assert options.rename({"max_cost": 1, "model": "m"}, "run") == {
        "max_cost_usd": 1,
        "llm_model": "m",
    }
    with pytest.raises(TypeError, match="'max_cost' or 'max_cost_usd', not both"):
        options.rename({"max_cost": 1, "max_cost_usd": 2}, "run")
