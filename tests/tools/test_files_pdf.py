"""PDFs in the folder: read and searched like text files, within bounds, and parsed once."""

import asyncio
import io
import threading
import zlib

import pypdf
import pytest

from babyagi.errors import ToolError
from babyagi.files import folder as folder_room
from babyagi.files.folder import Folder
from babyagi.retrieval.pages import read_document
from babyagi.tools import files as file_tools
from babyagi.tools.catalog import CatalogContext, open_tools
from babyagi.tools.files import FileSearch, render_found
from tests.small_web import make_pdf
from tests.tools.folders import read, search, tools_in


def join(*pages, password=""):
    writer = pypdf.PdfWriter()
    for page in pages:
        writer.append(io.BytesIO(make_pdf(page)))
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    whole = io.BytesIO()
    writer.write(whole)
    return whole.getvalue()


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "paper.pdf").write_bytes(join("Gulls nest on roofs.", "Herons breed in trees."))
    (tmp_path / "notes.md").write_text("Terns nest on sand.", encoding="utf-8")
    return tools_in(tmp_path)


@pytest.fixture
def parsed(monkeypatch):
    """The PDFs that were parsed, in turn, by a parser that only makes letters of the bytes."""
    names = []

    def parse(name, body, *, media_type):
        names.append(name)
        if b"broken" in body:
            raise ToolError(f"{name} cannot be read: it is broken")
        return body.decode().strip()

    monkeypatch.setattr(file_tools, "read_document", parse)
    return names


@pytest.mark.system
async def test_a_pdf_is_read_in_numbered_lines_with_its_pages(tools):
    assert await read(tools, "paper.pdf") == (
        "paper.pdf, lines 1-7 of 7\n1: ## Page 1\n2: \n3: Gulls nest on roofs.\n4: \n"
        "5: ## Page 2\n6: \n7: Herons breed in trees."
    )
    assert (await read(tools, "paper.pdf", first_line=7)).endswith("\n7: Herons breed in trees.")
    with pytest.raises(ToolError, match=r"^'paper\.pdf' has 7 lines, there is no line 8$"):
        await read(tools, "paper.pdf", first_line=8)


@pytest.mark.system
async def test_a_search_finds_the_lines_of_a_pdf_and_says_the_page(tools):
    passage = await tools["search_files"].run({"words": "Where do herons breed?"})

    assert passage.text == (
        "paper.pdf, lines 5-7, under Page 2\n5: ## Page 2\n6: \n7: Herons breed in trees."
    )
    assert passage.sources == ("file:paper.pdf",)


async def test_a_pdf_is_parsed_once_until_it_changes(tmp_path, parsed):
    (tmp_path / "good.pdf").write_bytes(b"%PDF-1.7 gulls")
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7 broken")
    tools = tools_in(tmp_path)

    for _ in range(2):
        assert "1: %PDF-1.7 gulls" in await read(tools, "good.pdf")
        assert "1: %PDF-1.7 gulls" in await search(tools, "gulls")
        with pytest.raises(ToolError, match=r"^'bad\.pdf' cannot be read: it is broken$"):
            await read(tools, "bad.pdf")
    assert sorted(parsed) == ["'bad.pdf'", "'good.pdf'"]

    (tmp_path / "good.pdf").write_bytes(b"%PDF-1.7 terns and more")

    assert "1: %PDF-1.7 terns" in await search(tools, "terns")
    assert "1: %PDF-1.7 terns" in await read(tools, "good.pdf")
    assert sorted(parsed) == ["'bad.pdf'", "'good.pdf'", "'good.pdf'"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"%PDF-1.7 junk", r"cannot be read: it is not a readable PDF \(\w+\): .*"),
        (
            join("secret", password="x"),
            r".*: it is not a readable PDF \(\w+\): it is damaged, encrypted or .*",
        ),
        (
            join("", ""),
            "cannot be read: the PDF has no text, perhaps only pictures",
        ),
        (b"%PDF-1.7".ljust(folder_room.MAX_DOCUMENT_BYTES + 1), r"is a PDF over 20,000,000 bytes"),
    ],
    ids=["broken", "encrypted", "pictures", "large"],
)
async def test_a_pdf_without_text_is_one_line_and_stops_no_search(tools, tmp_path, body, why):
    (tmp_path / "odd.pdf").write_bytes(body)

    with pytest.raises(ToolError, match=rf"^'odd\.pdf' {why}$"):
        await read(tools, "odd.pdf")
    found = await search(tools, "herons")

    assert found.startswith("paper.pdf, lines 5-7")
    assert found.endswith("not readable as text: odd.pdf; read_file says why]")


@pytest.mark.system
async def test_a_large_pdf_is_read_to_its_end(tools, tmp_path):
    whole = join("Herons breed in trees.")
    (tmp_path / "large.pdf").write_bytes(whole[:9] + b"%" * 6_000_000 + b"\n" + whole[9:])

    assert (await read(tools, "large.pdf")).endswith("3: Herons breed in trees.")


def test_a_search_parses_no_further_pdf_when_its_time_is_over(tmp_path, parsed):
    (tmp_path / "z.md").write_text("gulls", encoding="utf-8")
    for n in range(3):
        (tmp_path / f"paper{n}.pdf").write_bytes(b"%PDF-1.7 gulls" + b" and terns" * n)
    # a second passes with each look at the clock; text files are read before PDFs
    search = FileSearch(Folder(tmp_path), monotonic=iter(range(1000)).__next__)
    for n in range(100):
        (tmp_path / f"n{n}.pdf").write_bytes(b"%PDF-1.7 broken")
    first = search.find("gulls")
    text = render_found(first, words="gulls")

    assert [extract.path for extract in first.extracts][:1] == ["z.md"]
    assert (first.n_files, len(first.late), first.n_listed) == (15, 89, 104)
    assert len(parsed) == 14
    assert "[not searched, because one search reads only so much: n13.pdf, " in text
    assert text.endswith(" and 84 more; search again, or with a pattern such as docs/*]")
    while (found := search.find("gulls")).late:
        pass
    assert {extract.path for extract in found.extracts} == {
        "z.md", "paper0.pdf", "paper1.pdf", "paper2.pdf",
    }  # fmt: skip
    assert len(parsed) == 103


def test_pdfs_that_are_parsed_each_time_keep_no_other_from_being_searched(tmp_path, parsed):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 terns")
    for n in range(20):
        (tmp_path / f"again{n}.pdf").hardlink_to(tmp_path / "a.pdf")
    (tmp_path / "z.pdf").write_bytes(b"%PDF-1.7 gulls and many more")
    search = FileSearch(Folder(tmp_path), monotonic=iter(range(1000)).__next__)

    found = search.find("gulls")

    assert [extract.path for extract in found.extracts] == ["z.pdf"] and found.late


def test_many_large_pdfs_are_searched_for_their_text_is_small(tmp_path, parsed):
    for n in range(10):
        (tmp_path / f"paper{n}.pdf").write_bytes(b"%PDF-1.7 gulls".ljust(4_000_000))

    assert FileSearch(Folder(tmp_path)).find("gulls").n_files == 10


def test_a_pdf_outside_the_folder_is_not_parsed(tmp_path, parsed):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.pdf").write_bytes(b"%PDF-1.7 gulls")
    (folder / "link.pdf").symlink_to("../secret.pdf")
    (folder / "hard.pdf").hardlink_to(tmp_path / "secret.pdf")
    search = FileSearch(Folder(folder))

    for path in ("link.pdf", "hard.pdf", "../secret.pdf"):
        with pytest.raises(ToolError):
            search.read(path, first_line=1, max_lines=1, max_chars=100)

    assert search.find("gulls").extracts == () and parsed == []


async def test_nothing_waits_at_the_end_for_a_pdf_that_is_being_parsed(tmp_path, monkeypatch):
    (tmp_path / "slow.pdf").write_bytes(b"%PDF-1.7")
    is_daemon = []

    def parse(name, body, *, media_type):
        is_daemon.append(threading.current_thread().daemon)
        return "text"

    monkeypatch.setattr(file_tools, "read_document", parse)
    context = CatalogContext(offload=asyncio.to_thread, folder=Folder(tmp_path))
    for name in ("read_file", "search_files"):
        (tool,) = open_tools([name], context)
        await tool.run({"path": "slow.pdf", "words": "text"})

    assert is_daemon == [True, True]


@pytest.mark.system
def test_a_pdf_made_to_cost_time_or_memory_is_one_line():
    stream = zlib.compress(b"BT /F1 12 Tf " + b"(a) Tj " * 9_000_000 + b"ET")
    body = make_pdf("x").replace(b"<< /Length", b"<< /Filter /FlateDecode /Length", 1)
    start, end = body.index(b"stream\n") + 7, body.index(b"\nendstream")

    with pytest.raises(ToolError, match=r"^'x\.pdf' .*(takes too long|too much time or memory)"):
        read_document(
            "'x.pdf'",
            body[:start] + stream + body[end:],
            media_type="application/pdf",
            timeout_s=2.0,
        )
