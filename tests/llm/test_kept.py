from babyagi.llm.kept import read_prompt, write_prompt
from babyagi.llm.prompt import UNMARKED, Message, Prompt, Speaker, ToolCall, ToolSpec, fence
from babyagi.tasks import Passage

SYSTEM = Message(speaker=Speaker.SYSTEM, text="Do it.")
CALL = ToolCall(id="c1", name="read_file", arguments='{"path": "a.md"}')
ASKED = Message(speaker=Speaker.ASSISTANT, text="", tool_calls=(CALL,))
GAVE = Message(speaker=Speaker.TOOL, text="seven", tool_call_id="c1")


def user(text):
    return Message(speaker=Speaker.USER, text=text)


def prompt(*messages):
    tool = ToolSpec(name="read_file", description="", parameters={})
    return Prompt(messages=messages, tools=(tool,), max_output_tokens=10)


def nothing(_):
    return ""


def read(request, find=nothing):
    kept = read_prompt(request, find)
    assert kept is not None
    return kept


def test_a_long_prompt_takes_half_of_its_length_and_is_read_as_it_was_asked():
    asked = prompt(
        SYSTEM, user("".join(f"Line {n} is about tea, 日本 and \udcff.\n" for n in range(99)))
    )

    request = write_prompt(asked)

    assert len(request) < len(asked.messages[1].text) / 2
    assert read(request).messages[1].text == asked.messages[1].text.replace("\udcff", "?")
    for damaged in (request[:-8], request.swapcase(), f"{request}é", "zlib:", "zlib:AAAA"):
        assert read_prompt(damaged, nothing) is None


def test_a_prompt_is_read_as_it_was_asked():
    asked = prompt(SYSTEM, user("ünïcödé\n日本"), ASKED, GAVE)

    kept = read(write_prompt(asked))

    assert kept.messages == asked.messages
    assert (kept.tools, kept.n_same) == (("read_file",), 0)


def test_the_marks_of_fences_are_left_out():
    fenced = fence("task", Passage(text="Read a.md", origin="person"))
    assert UNMARKED in fenced

    kept = read(write_prompt(prompt(user(fenced))))

    assert kept.messages[0].text == "<<task from person\nRead a.md\n>>"


def test_messages_that_an_earlier_prompt_began_with_are_kept_once():
    long = user("x" * 10_000)
    first = write_prompt(prompt(SYSTEM, long))
    second = write_prompt(prompt(SYSTEM, long, ASKED, GAVE), before=(SYSTEM, long), before_key="1")
    # of a conversation that was cut: less is shared with the second than with the first
    third = write_prompt(
        prompt(SYSTEM, user("cut")), before=(SYSTEM, long, ASKED, GAVE), before_key="2"
    )
    find = {"1": first, "2": second}.get

    assert len(second) + len(third) < 1000
    kept = read(second, find)
    assert (kept.messages, kept.n_same) == ((SYSTEM, long, ASKED, GAVE), 2)
    assert read(third, find).messages == (SYSTEM, user("cut"))


def test_a_step_of_an_earlier_version_kept_no_prompt():
    assert read_prompt("", nothing) is None
    assert read_prompt('{"tool": "read_file", "arguments": {}}', nothing) is None
