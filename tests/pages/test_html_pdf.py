"""The page as PDF."""

import base64
import sys

import pytest

from babyagi.errors import SettingsError
from babyagi.pages.html import render_pdf, require_pdf


@pytest.mark.system  # the library looks for those of the system
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_page_becomes_a_pdf_and_nothing_that_it_names_is_loaded(tmp_path, caplog):
    try:
        require_pdf()
    except SettingsError as error:
        pytest.skip(error.why)
    named = tmp_path / "named.css"
    named.write_text("body { color: red }")
    page = f'<link rel=stylesheet href="{named.as_uri()}"><img src="http://127.0.0.1:9/x"><p>Hi'

    assert render_pdf(page).startswith(b"%PDF")

    refused = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len([text for text in refused if "disallowed protocol" in text]) == 2


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_picture_that_stands_in_the_page_is_drawn_and_loads_nothing(caplog):
    try:
        require_pdf()
    except SettingsError as error:
        pytest.skip(error.why)
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/>'
        '<image href="http://127.0.0.1:9/x" width="9" height="9"/></svg>'
    )
    data = base64.b64encode(picture.encode()).decode()

    assert render_pdf(f'<img src="data:image/svg+xml;base64,{data}">').startswith(b"%PDF")

    refused = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(refused) == 1 and "disallowed protocol" in refused[0]


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "weasyprint", None)

    with pytest.raises(SettingsError) as raised:
        require_pdf()

    assert "pip install 'babyagi-daemon[pdf]'" in raised.value.fix
