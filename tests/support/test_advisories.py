"""Known holes are read from changelogs of every form that the dependencies have."""

import pytest

from support.advisories import find_holes

MARKDOWN = """# Changelog

## Version 7.1.1, 2026-11-20

### Security (SEC)
- Limit inline image size (#4460)
- Restrict streams (#4456)

## Version 7.1.0, 2026-11-13

### Documentation (DOC)
- Exclude performance issues from security reports (#4280)
"""
UNDERLINED = """2.8.0 (2026-09-15)
==================

- Repaired a test of CVE-2025-11111.

2.7.1 (2026-05-07)
------------------

Security
--------

- A chunk could have any length. (High severity,
  `GHSA-vxq7-64xx-v4gw <https://example.com/GHSA-vxq7-64xx-v4gw>`__)
- Loops end (CVE-2025-11111, CVE-2025-11112)

Version 2.7
-----------

Uses library 3.1 (see CVE-2025-11113).
"""
LINKED = """`v2.15.0 <https://example.com/compare/2.14.0...2.15.0>`__
-----------------------------------------------------------

Security
~~~~~~~~

- Wrap errors
"""
INVENTED = "3.2.1 of something else is no release\n\n## Unreleased\n- CVE-2025-11114\n"


@pytest.mark.parametrize(
    ("text", "holes"),
    [
        (MARKDOWN, {"lib-7.1.1": "<7.1.1"}),
        (UNDERLINED, {
            "CVE-2025-11111": "<2.7.1", "CVE-2025-11112": "<2.7.1", "CVE-2025-11113": "<2.7",
            "GHSA-vxq7-64xx-v4gw": "<2.7.1",
        }),
        (LINKED, {"lib-2.15.0": "<2.15.0"}),
        (INVENTED, {}),
        ("9.1 (2021-12-12)\n---\n\nAs another package: CVE-2025-11115\n", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_release_that_mends_a_hole_is_the_first_without_it(text, holes):
    assert {one["id"]: one["affected"] for one in find_holes("lib", "9", text)} == holes


def test_the_entry_that_names_a_hole_is_its_summary():
    found = {one["id"]: one["summary"] for one in find_holes("lib", "9", UNDERLINED)}

    assert found["CVE-2025-11112"] == "Loops end (CVE-2025-11111, CVE-2025-11112)"
    assert found["GHSA-vxq7-64xx-v4gw"].startswith("A chunk could have any length. (High")
