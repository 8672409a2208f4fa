"""The text of Word documents and Excel workbooks: paragraphs, headings, tables, and what cells show."""

import io
import zipfile

import pytest

from babyagi.files.folder import OFFICE_BY_SUFFIX
from babyagi.retrieval import page_text
from babyagi.retrieval.page_text import UnreadableError, read_text

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006'
STYLES = (
    f'<w:styles {W}><w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/>'
    "</w:style></w:styles>"
)


def make_zip(parts):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return made.getvalue()


def make_relations(**target_by_kind):
    """The part that says by which parts another one goes on."""
    relations = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for kind, target in target_by_kind.items()
    )
    return f'<Relationships {PACKAGE}/relationships">{relations}</Relationships>'


def make_docx(body):
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return make_zip(
        {
            "[Content_Types].xml": f'<Types {PACKAGE}/content-types"/>',
            "_rels/.rels": make_relations(officeDocument="word/document.xml"),
            "word/_rels/document.xml.rels": make_relations(styles="styles.xml"),
            "word/styles.xml": STYLES,
            "word/document.xml": document,
        }
    )


def paragraph(text, style=""):
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r><w:t>{text}</w:t></w:r></w:p>"


def make_xlsx(rows, *, sheet="Nests", more=""):
    relations = make_relations(
        worksheet="worksheets/sheet1.xml", styles="styles.xml", sharedStrings="sharedStrings.xml"
    )
    return make_zip(
        {
            "[Content_Types].xml": f'<Types {PACKAGE}/content-types"/>',
            "_rels/.rels": make_relations(officeDocument="xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook {S} xmlns:r="{OFFICE}">{more}<sheets>'
            f'<sheet name="{sheet}" sheetId="1" r:id="worksheet"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations,
            "xl/sharedStrings.xml": f"<sst {S}><si><t>Day</t></si><si><r><t>Ne</t></r><r><t>sts</t>"
            "</r><rPh><t>no</t></rPh></si></sst>",
            "xl/styles.xml": f'<styleSheet {S}><numFmts><numFmt numFmtId="170" formatCode="dd\\.mm"/>'
            '<numFmt numFmtId="171" formatCode="[Red]0.0 &quot;days&quot;"/></numFmts>'
            '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/>'
            '<xf numFmtId="171"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>",
        }
    )


def read(body, suffix):
    return read_text(body, content_type=OFFICE_BY_SUFFIX[suffix], url="").text


def read_rows(cells, **more):
    lines = read(make_xlsx(f"<row>{cells}</row>", **more), ".xlsx").splitlines()
    return lines[2]


def test_a_word_document_is_read_as_paragraphs_under_its_headings_in_any_language():
    body = paragraph("Nests", "berschrift2") + paragraph("Herons breed in trees.")

    assert read(make_docx(body), ".docx") == "## Nests\n\nHerons breed in trees."


def test_a_row_of_a_table_in_a_word_document_is_one_line():
    cells = f"<w:tc>{paragraph('Bird')}</w:tc><w:tc>{paragraph('in')}{paragraph('trees')}</w:tc>"
    body = f"{paragraph('Before.')}<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"

    assert read(make_docx(body), ".docx").splitlines() == [
        *("Before.", "", "| Bird | in trees", "", "| Bird | in trees")
    ]


def test_deleted_text_is_not_read_and_inserted_text_is():
    body = (
        "<w:p><w:del><w:r><w:delText>Gulls</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>Herons</w:t></w:r></w:ins><w:r><w:tab/><w:t>breed.</w:t></w:r></w:p>"
    )

    assert read(make_docx(body), ".docx") == "Herons breed."


def test_each_sheet_is_a_table_under_its_name_and_a_gap_stays_a_gap():
    rows = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row/>'
        '<row><c r="A3" t="inlineStr"><is><t>Monday</t></is></c><c r="C3"><v>3</v></c></row>'
    )

    assert read(make_xlsx(rows), ".xlsx").splitlines() == [
        "## Nests",
        "",
        "| Day |  | Nests |",
        "| --- | --- | --- |",
        "| Monday |  | 3 |",
    ]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("<c><v>0.30000000000000004</v></c>", "0.3"),
        ("<c><v>1234567890123</v></c>", "1234567890123"),
        ('<c s="1"><v>46082</v></c>', "2026-03-01"),
        ('<c s="2"><v>46082.5</v></c>', "2026-03-01 12:00:00"),
        ('<c s="1"><v>0.25</v></c>', "06:00:00"),
        ('<c s="3"><v>46082</v></c>', "46082"),
        ('<c t="b"><v>1</v></c>', "TRUE"),
        ('<c t="str"><f>A1</f><v>owl</v></c>', "owl"),
    ],
)
def test_a_cell_is_read_as_what_it_means(cell, shown):
    assert read_rows(cell) == f"| {shown} |"


def test_the_name_of_a_sheet_is_one_line_and_makes_no_other_sheet():
    name = "Nests&#10;&#10;## Total&#10;&#10;| 500 |"

    text = read(make_xlsx('<row><c r="A1"><v>5</v></c></row>', sheet=name), ".xlsx")

    assert text.splitlines() == ["## Nests ## Total | 500 |", "", "| 5 |", "| --- |"]


@pytest.mark.parametrize("cell", ['<c t="e"><v>#DIV/0!</v></c>', "<c><f>SUM(A2:A3)</f></c>"])
def test_an_error_and_a_formula_that_was_never_calculated_are_empty_cells(cell):
    assert read_rows(f"<c><v>4</v></c>{cell}<c><v>5</v></c>") == "| 4 |  | 5 |"


def test_dates_of_a_workbook_that_counts_from_1904_are_read_as_such():
    more = '<workbookPr date1904="1"/>'

    assert read_rows('<c s="1"><v>44620</v></c>', more=more) == "| 2026-03-01 |"


@pytest.mark.parametrize("suffix", [".docx", ".xlsx"])
@pytest.mark.parametrize(
    "body", [b"PK\x03\x04 not really", b"\xd0\xcf\x11\xe0", make_zip({"a": "b"})]
)
def test_what_is_no_office_document_is_an_error_that_says_so(suffix, body):
    with pytest.raises(UnreadableError, match="it is damaged, encrypted or of another format"):
        read(body, suffix)


def test_a_document_without_text_is_an_error_that_says_so():
    with pytest.raises(UnreadableError, match="the Word document has no text"):
        read(make_docx(""), ".docx")


def test_of_a_long_document_the_beginning_is_read_and_its_end_says_so(monkeypatch):
    monkeypatch.setattr(page_text, "MAX_OFFICE_CHARS", 100)

    text = read(make_docx(paragraph("Herons breed in trees.") * 20), ".docx")

    assert text.endswith("\n\n[the Word document is longer: its end is not read]")


def test_a_sheet_of_more_cells_than_the_bound_is_not_read(monkeypatch):
    monkeypatch.setattr(page_text, "MAX_CELLS", 3)

    with pytest.raises(UnreadableError, match="not a readable workbook"):
        read_rows("<c><v>1</v></c>" * 4)
