"""Escapes text for HTML, fills templates, and renders a page as PDF."""

from __future__ import annotations

from html import escape as escape_html
from importlib.resources import files
from string import Template

from babyagi.errors import SettingsError
from babyagi.text import harmless


class Html(str):
    """HTML that may be put into a page unescaped: made in this package, from escaped texts."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Return the text escaped for a page, with harmless characters only. `Html` is returned
    unchanged."""
    if isinstance(text, Html):
        return text
    lines = (harmless(line) for line in str(text).split("\n"))
    return Html(escape_html("\n".join(lines)))


def fill(template: str, **values: object) -> Html:
    """Return the template with its `$places` filled and every value escaped.

    Raises:
        KeyError: a place has no value.
    """
    return Html(Template(template).substitute({key: escape(one) for key, one in values.items()}))


def join(parts: list[Html], between: str = "") -> Html:
    return Html(between.join(parts))


def load(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("babyagi.pages").joinpath(name).read_text(encoding="utf-8")


# -- a page as PDF
# --------------------------------------------------------------------------------------------------


def require_pdf() -> None:
    """Check that a PDF can be made here.

    Raises:
        SettingsError: WeasyPrint, or a system library that it needs, is missing.
    """
    try:
        import weasyprint  # noqa: F401
    except (ImportError, OSError) as error:
        raise SettingsError(
            "a PDF cannot be made here",
            why=f"WeasyPrint cannot be loaded: {error}",
            fix="pip install 'babyagi-daemon[pdf]', or another format: --format html",
            guide="report",
        ) from error


def render_pdf(page: str) -> bytes:
    """Return the page as PDF. Nothing is loaded from outside; only pictures inside the page are
    shown.

    Raises:
        SettingsError: as `require_pdf`.
    """
    require_pdf()
    from weasyprint import HTML
    from weasyprint.urls import URLFetcher

    within = URLFetcher(allowed_protocols=("data",), allow_redirects=False)
    return bytes(HTML(string=page, url_fetcher=within).write_pdf())
