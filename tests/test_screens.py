"""The pictures of the screens in docs/screens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PICTURES = sorted((ROOT / "docs" / "screens").glob("*.svg"))


def test_there_is_a_picture_for_each_command_width_and_look():
    names = {path.stem for path in PICTURES}

    assert names == {
        f"{name}-{width}-{look}"
        for name in ("run", "report", "status", "tasks", "show")
        for width in (60, 80, 120)
        for look in ("light", "dark")
    }


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_fetches_nothing_and_names_no_folder_of_a_machine(path):
    text = path.read_text(encoding="utf-8")

    assert set(re.findall(r"https?://[\w./-]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
    assert re.findall(r"/(?:home|root|tmp|work)/\w+", text) == []
