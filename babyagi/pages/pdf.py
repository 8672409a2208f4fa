"""A page as PDF."""

from __future__ import annotations

from babyagi.errors import SettingsError


def require_pdf() -> None:
    """Raises SettingsError where the library or what it needs of the system is not there."""
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
    """Return the page as PDF; nothing that it names is loaded. Raises as `require_pdf`."""
    require_pdf()
    from weasyprint import HTML
    from weasyprint.urls import URLFetcher

    nothing = URLFetcher(allowed_protocols=(), allow_redirects=False)
    return bytes(HTML(string=page, url_fetcher=nothing).write_pdf())
