"""The tools on the folder: numbered lines that can be cited, bounded output, and always how to read
on."""

import asyncio
import re

import pytest

from babyagi import files
from babyagi.errors import ToolError
from babyagi.files import Folder
from babyagi.tasks import Effect
from babyagi.tools.base import parse_arguments
from babyagi.tools.files import build_file_tools, build_write_file


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "limits.md").write_text(
        "\n".join(f"limit {n}" for n in range(1, 211)), encoding="utf-8"
    )
    return {
        tool.name: tool for tool in build_file_tools(Folder(tmp_path), offload=asyncio.to_thread)
    }


async def use(tool, arguments=""):
    passage = await tool.run(parse_arguments(tool, arguments))
    assert len(passage.text) <= tool.max_output_chars
    return passage


async def test_lines_come_numbered_under_a_head_that_says_which(tools):
    passage = await use(tools["read_file"], '{"path": "limits.md", "n_lines": 80}')
    lines = passage.text.split("\n")

    assert passage.origin == "file:limits.md"
    assert lines[0] == "limits.md, lines 1-80 of 210"
    assert lines[1:3] == ["1: limit 1", "2: limit 2"]
    assert lines[-1] == "[more: read_file with first_line=81]"


async def test_reading_on_as_told_reaches_the_end(tools):
    seen, first_line = [], 1
    while first_line:
        text = (
            await use(
                tools["read_file"],
                f'{{"path": "limits.md", "first_line": {first_line}, "n_lines": 70}}',
            )
        ).text
        seen += re.findall(r"^(\d+): limit \1$", text, re.MULTILINE)
        more = re.search(r"first_line=(\d+)\]$", text)
        first_line = int(more.group(1)) if more else 0

    assert seen == [str(n) for n in range(1, 211)]


async def test_the_output_is_bounded_whatever_the_lines_are(tools, tmp_path):
    for name, line in (("long", "x" * 9000), ("short", "y"), ("empty", "")):
        (tmp_path / name).write_text("\n".join([line] * 500), encoding="utf-8")
        text = (await use(tools["read_file"], f'{{"path": "{name}", "n_lines": 400}}')).text
        assert re.search(r"\[more: read_file with first_line=\d+\]$", text)


async def test_an_empty_file_says_so(tools, tmp_path):
    (tmp_path / "empty").touch()

    assert (await use(tools["read_file"], "empty")).text == "empty is empty"


async def test_a_listing_gives_paths_and_sizes(tools, tmp_path):
    (tmp_path / "big.bin").write_bytes(b"\0" * 2_340_000)
    (tmp_path / "a b  c.md").touch()

    passage = await use(tools["list_files"])

    assert passage.origin == "tool:list_files"
    assert passage.text == "3 files\na b  c.md  (0 B)\nbig.bin  (2.3 MB)\nlimits.md  (2.0 kB)"
    assert (
        await use(tools["list_files"], '{"pattern": "*.pdf"}')
    ).text == "No file matches '*.pdf'."


async def test_a_listing_that_does_not_fit_says_how_to_see_the_rest(tools, tmp_path):
    for n in range(600):
        (tmp_path / f"{n:03} {'n' * 90}.txt").touch()

    lines = (await use(tools["list_files"])).text.split("\n")

    assert lines[0] == "601 files"
    said = re.fullmatch(
        (
            r"\[(\d+) of 601 files shown, (\d+) more; a pattern such as docs/\* or \*\.md shows "
            r"others\]"
        ),
        lines[-1],
    )
    assert said and int(said[1]) + int(said[2]) == 601 and int(said[1]) == len(lines) - 2


async def test_a_listing_of_a_folder_that_is_too_large_says_so_and_a_pattern_looks_into_one_folder(
    tools, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "MAX_WALKED", 20)
    for place in ("a", "b", "c"):
        (tmp_path / place).mkdir()
        for n in range(15):
            (tmp_path / place / f"{n}.txt").touch()

    lines = (await use(tools["list_files"])).text.split("\n")
    in_one = [
        (await use(tools["list_files"], f'{{"pattern": "{place}/*.txt"}}')).text.split("\n")[0]
        for place in ("a", "b", "c")
    ]

    assert lines[0].endswith(" or more files")
    assert lines[-1].endswith(
        " or many more; the folder is too large to look through: docs/* looks into docs]"
    )
    assert in_one == ["15 files"] * 3


async def test_a_failure_is_a_tool_error_of_one_line(tools):
    with pytest.raises(ToolError, match=r"^no file 'limts\.md'; nearest: limits\.md$"):
        await use(tools["read_file"], "limts.md")


def test_the_tools_of_a_folder_only_read(tools):
    assert {tool.effect for tool in tools.values()} == {Effect.READ}
    assert set(tools) == {"list_files", "read_file", "search_files"}


async def test_a_search_gives_the_lines_with_their_places(tools, tmp_path):
    (tmp_path / "limits.txt").write_text("One\nTen DOLLARS a day\n", encoding="utf-8")
    (tmp_path / "other.md").write_text("dollars too\n", encoding="utf-8")
    (tmp_path / "picture.bin").write_bytes(b"\0dollars")

    everywhere = (await tools["search_files"].run({"words": " dollars "})).text
    somewhere = (await tools["search_files"].run({"words": "dollars", "pattern": "*.md"})).text

    assert everywhere == "limits.txt:2: Ten DOLLARS a day\nother.md:1: dollars too"
    assert somewhere == "other.md:1: dollars too"
    assert "No line of" in (await tools["search_files"].run({"words": "euros"})).text


async def test_a_search_is_bounded_and_says_so(tools, tmp_path):
    (tmp_path / "long.txt").write_text("word " * 500 + "\n" + "word\n" * 500, encoding="utf-8")

    text = (await tools["search_files"].run({"words": "word"})).text

    assert len(text) < 16_000 and text.endswith("find others]")
    with pytest.raises(ToolError):
        await tools["search_files"].run({"words": "  "})


async def test_a_file_is_written_once_and_replaced_only_when_that_is_asked(tmp_path):
    tool = build_write_file(Folder(tmp_path), offload=asyncio.to_thread)

    said = await tool.run({"path": "notes/today.md", "text": "one"})
    with pytest.raises(ToolError, match="replace=true"):
        await tool.run({"path": "notes/today.md", "text": "two"})
    await tool.run({"path": "notes/today.md", "text": "three", "replace": True})

    assert said.text == "notes/today.md is written, 3 bytes"
    assert (tmp_path / "notes" / "today.md").read_text(encoding="utf-8") == "three"
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["today.md"]
    assert tool.effect is Effect.ONCE
