"""Word documents and Excel workbooks in the folder are read and searched like text files."""

import asyncio

import pytest

from babyagi.errors import ToolError
from babyagi.files import folder as folder_room
from babyagi.files.folder import Folder
from babyagi.tools.files import build_file_tools
from tests.retrieval.test_office_text import make_docx, make_xlsx, paragraph

pytestmark = pytest.mark.system
ROWS = (
    '<row><c t="inlineStr"><is><t>Bird</t></is></c><c t="inlineStr"><is><t>Nests</t></is></c></row>'
    '<row><c t="inlineStr"><is><t>Heron</t></is></c><c><v>12</v></c></row>'
)
FAR_ROW = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'  # 17 billion cells from the first


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "Vögel (Entwurf).DOCX").write_bytes(make_docx(paragraph("Herons breed in trees.")))
    (tmp_path / "nests.xlsx").write_bytes(make_xlsx(ROWS))
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04 not really")
    (tmp_path / "far.xlsx").write_bytes(make_xlsx(ROWS + FAR_ROW))
    (tmp_path / "vast.xlsx").write_bytes(b"PK".ljust(folder_room.MAX_DOCUMENT_BYTES + 1))
    return {
        tool.name: tool for tool in build_file_tools(Folder(tmp_path), offload=asyncio.to_thread)
    }


async def read(tools, path):
    return (await tools["read_file"].run({"path": path})).text


async def test_a_word_document_and_a_workbook_are_read_in_numbered_lines(tools):
    assert "\n1: Herons breed in trees." in await read(tools, "Vögel (Entwurf).DOCX")
    assert "\n5: | Heron | 12 |" in await read(tools, "nests.xlsx")


async def test_a_search_finds_what_stands_in_a_workbook_and_names_what_it_cannot_read(tools):
    found = (await tools["search_files"].run({"words": "How many heron nests?"})).text

    assert "| Heron | 12 |" in found and "Herons breed in trees." in found
    assert "broken.docx" in found and "vast.xlsx" in found


async def test_an_office_document_that_cannot_be_read_is_an_error_and_never_text(tools):
    with pytest.raises(
        ToolError, match=r"'broken\.docx' cannot be read: it is not a readable Word document"
    ):
        await read(tools, "broken.docx")
    with pytest.raises(ToolError, match=r"'far\.xlsx' cannot be read"):
        await read(tools, "far.xlsx")
    with pytest.raises(ToolError, match=r"is a workbook over 20,000,000 bytes"):
        await read(tools, "vast.xlsx")
