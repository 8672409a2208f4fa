"""The guide: Markdown pages that come with the package."""

from __future__ import annotations

import difflib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from babyagi.errors import NotFoundError


def guide_folder() -> Path:
    """Where the pages lie on disk."""
    return Path(str(resources.files("babyagi") / "guide"))


def list_topics() -> list[tuple[str, str]]:
    """Each page's name and title, by name."""
    return [(name, _title(page)) for name, page in sorted(_pages().items())]


def read_page(topic: str) -> str:
    """Return the page as Markdown. Raises `NotFoundError`."""
    pages = _pages()
    if topic not in pages:
        near = difflib.get_close_matches(topic, pages, n=1)
        fix = f"babyagi guide {near[0]}" if near else "babyagi guide lists the pages"
        raise NotFoundError(f"the guide has no page {topic!r}", fix=fix)
    return pages[topic].read_text(encoding="utf-8")


def _pages() -> dict[str, Traversable]:
    folder = resources.files("babyagi") / "guide"
    if not folder.is_dir():
        return {}
    return {
        page.name.removesuffix(".md"): page
        for page in folder.iterdir()
        if page.name.endswith(".md")
    }


def _title(page: Traversable) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")
