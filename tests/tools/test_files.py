"""The tools on the folder: numbered lines that can be cited, bounded output, and always how to read
on."""

import asyncio
import re
from contextlib import suppress

import pytest

from babyagi.errors import MachineShortError, ToolError
from babyagi.files import folder as folder_room
from babyagi.files.folder import Folder
from babyagi.journal import run_tool
from babyagi.retrieval.rank import MAX_PART_LINES
from babyagi.tasks import Effect
from babyagi.tools import files as file_tools
from babyagi.tools.base import parse_arguments
from babyagi.tools.files import build_write_file
from support.processes import open_files_left
from tests.tools.folders import tools_in


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "limits.md").write_text(
        "\n".join(f"limit {n}" for n in range(1, 211)), encoding="utf-8"
    )
    return tools_in(tmp_path)


async def use(tool, arguments=""):
    passage = await tool.run(parse_arguments(tool, arguments))
    assert len(passage.text) <= tool.max_output_chars
    return passage


async def search(tools, words, *, pattern=""):
    return await tools["search_files"].run({"words": words, "pattern": pattern})


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
    how = "a pattern such as docs/* or *.md shows others"
    assert lines[-1] == f"[{len(lines) - 2} of 601 files shown; {how}]" and len(lines) < 500


async def test_a_listing_of_a_folder_that_is_too_large_says_so_and_a_pattern_looks_into_one_folder(
    tools, tmp_path, monkeypatch
):
    monkeypatch.setattr(folder_room, "MAX_WALKED", 20)
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
        " or more files shown; a pattern such as docs/* or *.md shows others]"
    )
    assert in_one == ["15 files"] * 3


async def test_a_failure_is_a_tool_error_of_one_line(tools):
    with pytest.raises(ToolError, match=r"^no file 'limts\.md'; nearest: limits\.md$"):
        await use(tools["read_file"], "limts.md")


def test_the_tools_of_a_folder_only_read(tools):
    assert {tool.effect for tool in tools.values()} == {Effect.READ}
    assert set(tools) == {"list_files", "read_file", "search_files"}


async def test_a_search_gives_the_best_passages_with_their_lines_and_says_whose_they_are(
    tools, tmp_path
):
    (tmp_path / "limits.txt").write_text(
        "= Money\n\nTen dollars.\n\n== A day\nThe limit is 10\nDOLLARS.\n", encoding="utf-8"
    )
    (tmp_path / "other.md").write_text("dollars too\n", encoding="utf-8")
    (tmp_path / "picture.bin").write_bytes(b"\0dollars")

    best = await search(tools, "What is the limit in dollars?")
    somewhere = await search(tools, "dollars", pattern="*.md")

    assert best.text.startswith(
        "limits.txt, lines 5-7, under Money > A day\n"
        "5: == A day\n6: The limit is 10\n7: DOLLARS.\n\n"
    )
    assert {"file:limits.txt", "file:other.md"} <= set(best.sources)
    assert somewhere.text == "other.md, lines 1-1\n1: dollars too"
    assert "No passage of" in (await search(tools, "euros")).text


async def test_a_search_names_the_files_that_it_could_not_read(tools, tmp_path):
    (tmp_path / "old.txt").write_bytes("Die Größe: zwei Meter".encode("cp1252"))
    for n in range(7):
        (tmp_path / f"photo{n}.png").write_bytes(b"\x89PNG\0 dollars")

    for _ in range(2):  # the second search finds the files in its cache
        nothing = await search(tools, "euros", pattern="p*.png")
        found = await search(tools, "Größe", pattern="[op]*")
        assert nothing.text == (
            "No passage of 0 files contains 'euros'.\n[not searched, because they are not readable as text: "
            "photo0.png, photo1.png, photo2.png, photo3.png, photo4.png and 2 more; "
            "read_file says why]"
        )
        assert found.text.startswith("old.txt, lines 1-1\n1: Die Größe: zwei Meter\n\n[not ")


async def test_a_passage_with_the_literal_words_comes_first_even_inside_longer_words(
    tools, tmp_path
):
    (tmp_path / "a.md").write_text("out of time, out of time\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("It is said: time out of mind, all the time.", encoding="utf-8")
    (tmp_path / "c.md").write_text("x = connect(readtimeout=5)  # C++", encoding="utf-8")

    assert (await search(tools, "time out of")).sources[0] == "file:b.md"
    assert (await search(tools, "adtimeo")).sources == ("file:c.md",)
    assert (await search(tools, "++")).sources == ("file:c.md",)


async def test_a_search_sees_each_change_of_the_folder(tools, tmp_path):
    assert "No passage" in (await search(tools, "herons")).text
    (tmp_path / "birds.md").write_text("herons", encoding="utf-8")
    assert (await search(tools, "herons")).sources == ("file:birds.md",)
    (tmp_path / "birds.md").write_text("gulls and terns", encoding="utf-8")
    assert "No passage" in (await search(tools, "herons")).text
    assert (await search(tools, "gulls")).sources == ("file:birds.md",)
    (tmp_path / "birds.md").unlink()
    assert "No passage" in (await search(tools, "gulls")).text


async def test_a_file_that_was_searched_and_then_linked_from_outside_is_searched_no_more(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "birds.md").write_text("herons", encoding="utf-8")
    tools = tools_in(folder)
    assert (await search(tools, "herons")).sources

    (tmp_path / "outside.md").hardlink_to(folder / "birds.md")

    assert not (await search(tools, "herons")).sources


async def test_a_line_that_is_longer_than_a_passage_is_found_to_its_end(tools, tmp_path):
    (tmp_path / "long.txt").write_text("word " * 5000 + "The heron breeds.", encoding="utf-8")

    text = (await search(tools, "heron")).text

    assert text.startswith("long.txt, lines 1-1\n1: word ") and text.endswith("The heron breeds.")


@pytest.mark.parametrize("text", ["a" + "\n" * 3000, "x\n" * 3000, "= a\n" * 3000])
def test_no_text_makes_a_passage_of_unbounded_length(text):
    extracts = list(file_tools.split_extracts("a.md", text.split("\n")))

    assert max(len(extract.part.lines) for extract in extracts) <= MAX_PART_LINES


@pytest.mark.parametrize("n_left", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_files", {}),
        ("read_file", {"path": "deep/more.md"}),
        ("search_files", {"words": "stone"}),
    ],
)
async def test_no_file_is_called_unreadable_because_too_many_others_are_open(
    tools, tmp_path, name, arguments, n_left
):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "more.md").write_text("A stone lies here.\n")

    with open_files_left(n_left), suppress(MachineShortError):
        short = await run_tool(tools[name], arguments)
        assert "more.md" in short.passage.text
        assert not short.is_error
    found = await run_tool(tools[name], arguments)

    assert "more.md" in found.passage.text
    assert "no readable text" not in found.passage.text


async def test_a_search_is_bounded_and_says_so(tools, tmp_path, monkeypatch):
    (tmp_path / "long.txt").write_text("word " * 500 + "\n" + "word\n" * 5000, encoding="utf-8")
    (tmp_path / "short.txt").write_text("word", encoding="utf-8")

    with monkeypatch.context() as bounded:
        bounded.setattr(file_tools, "MAX_READ_CHARS", 1)
        smallest = (await search(tools, "word", pattern=".txt")).text
    text = (await search(tools, "word")).text

    assert len(text) < 16_000 and text.endswith("a pattern find others]")
    assert smallest.startswith("short.txt, lines 1-1\n1: word\n\n[not searched, ")
    with pytest.raises(ToolError):
        await search(tools, "  ")


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
