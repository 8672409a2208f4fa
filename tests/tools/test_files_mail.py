"""Mail in the folder: read and searched as people read it, and as plain text where it is no mail."""

import pytest

from babyagi.errors import ToolError
from babyagi.files import folder as folder_room
from babyagi.files.folder import Folder
from babyagi.retrieval.page_text import LONGER
from babyagi.retrieval.pages import read_document
from babyagi.tools import files as file_tools
from babyagi.tools.files import FileSearch
from tests.tools.folders import read, search, tools_in

HERONS = (
    b"Received: from a by b; Tue, 3 Mar 2026 10:00:00 +0000\n"
    b"From: =?utf-8?q?J=C3=B6rg?= <j@example.org>\nTo: bob@example.org\n"
    b"Date: Tue, 3 Mar 2026 10:00:00 +0000\nSubject: =?utf-8?q?W=C3=A4rme?=\n"
    b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
    b"Herons breed in tre=\nes f=C3=BCr good.\n"
)
GULLS = b"From: cy@example.org\nSubject: Gulls\n\nGulls nest on roofs.\n"
MBOX = b"".join(b"From x Tue Mar  3 10:00:00 2026\n%s\n" % one for one in (HERONS, GULLS))


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "herons.eml").write_bytes(HERONS)
    (tmp_path / "all.MBOX").write_bytes(MBOX)
    return tools_in(tmp_path)


@pytest.fixture
def parsed(monkeypatch):
    """The mail that was parsed, in turn, by a parser that only makes letters of the bytes."""
    names = []

    def parse(name, body, *, media_type):
        names.append((name, media_type))
        if b"broken" in body:
            raise ToolError(f"{name} takes too long to parse")
        return f"parsed {body.decode()}"

    monkeypatch.setattr(file_tools, "read_document", parse)
    return names


@pytest.mark.system
async def test_mail_is_read_decoded_in_numbered_lines(tools):
    assert await read(tools, "herons.eml") == (
        "herons.eml, lines 1-7 of 7\n1: ## Subject: Wärme\n2: \n"
        "3: From: Jörg <j@example.org>\n4: To: bob@example.org\n"
        "5: Date: Tue, 3 Mar 2026 10:00:00 +0000\n6: \n7: Herons breed in trees für good."
    )
    assert (await read(tools, "all.MBOX", first_line=9)) == (
        "all.MBOX, lines 9-13 of 13\n9: ## Subject: Gulls\n10: \n11: From: cy@example.org\n12: \n"
        "13: Gulls nest on roofs."
    )


@pytest.mark.system
async def test_a_search_finds_the_lines_of_mail_that_read_file_shows(tools):
    assert await search(tools, "Where do gulls nest?", pattern="*.mbox") == (
        "all.MBOX, lines 9-13, under Subject: Gulls\n9: ## Subject: Gulls\n10: \n"
        "11: From: cy@example.org\n12: \n13: Gulls nest on roofs."
    )
    assert "\n7: Herons breed in trees für good." in await search(tools, "trees für good")


@pytest.mark.system
@pytest.mark.parametrize("name", ["notes.eml", "notes.mbox"])
async def test_what_is_no_mail_is_read_as_a_text_file(tools, tmp_path, name):
    (tmp_path / name).write_text("\nTerns nest on sand.\n", encoding="utf-8")

    assert await read(tools, name) == f"{name}, lines 1-2 of 2\n1: \n2: Terns nest on sand."
    assert "2: Terns nest on sand." in await search(tools, "terns", pattern=name)

    (tmp_path / name).write_bytes(b"\0\1" * 50)
    with pytest.raises(ToolError, match=f"^'{name}' is not a text file$"):
        await read(tools, name)


async def test_mail_is_parsed_once_until_it_changes_also_if_it_is_broken(tmp_path, parsed):
    (tmp_path / "good.eml").write_bytes(b"gulls")
    (tmp_path / "bad.mbox").write_bytes(b"broken gulls")
    tools = tools_in(tmp_path)

    for _ in range(2):
        found = await search(tools, "gulls")
        assert "1: parsed gulls" in found and "1: broken gulls" in found
        assert "1: parsed gulls" in await read(tools, "good.eml")
        assert "1: broken gulls" in await read(tools, "bad.mbox")

    assert sorted(parsed) == [
        ("'bad.mbox'", "application/mbox"), ("'good.eml'", "message/rfc822"),
    ]  # fmt: skip

    (tmp_path / "good.eml").write_bytes(b"terns and more")

    assert "1: parsed terns" in await read(tools, "good.eml")
    assert len(parsed) == 3


def test_of_mail_beyond_the_bound_the_beginning_is_read(tmp_path, parsed, monkeypatch):
    monkeypatch.setattr(folder_room, "MAX_FILE_BYTES", 8)
    monkeypatch.setattr(folder_room, "MAX_DOCUMENT_BYTES", 10)
    (tmp_path / "large.mbox").write_bytes(b"gulls nest on roofs")
    (tmp_path / "whole.mbox").write_bytes(b"terns")
    (tmp_path / "bad.mbox").write_bytes(b"broken\r\nand more")
    search = FileSearch(Folder(tmp_path))

    large, whole, bad = (
        search.read(f"{name}.mbox", first_line=1, max_lines=9, max_chars=99)
        for name in ("large", "whole", "bad")
    )

    assert (large.text, large.is_cut) == ("parsed gulls nest", True)
    assert (whole.text, whole.is_cut) == ("parsed terns", False)
    assert (bad.text, bad.is_cut) == (f"broken\n{LONGER}", True)


def test_a_folder_without_a_reader_of_documents_reads_mail_as_text(tmp_path):
    (tmp_path / "herons.eml").write_bytes(HERONS)

    assert Folder(tmp_path).read("herons.eml").text == HERONS.decode().removesuffix("\n")


@pytest.mark.system
def test_mail_made_to_cost_time_is_one_line():
    nested = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(100)
    )

    with pytest.raises(ToolError, match=r"^'x\.eml' .*(takes too long|too much time or memory)"):
        read_document(
            "'x.eml'",
            b"From: a\n" + nested + b"--\n" * 5_000_000,
            media_type="message/rfc822",
            timeout_s=2.0,
        )
