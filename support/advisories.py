"""Renews the list of known holes of the packages that this program depends on:
`python -m support.advisories`, which `./check advisories` calls.

`tests/data/advisories.json` has two parts. `read` names the packages: each dependency that is not
for development alone, and what these bring that parses bytes from outside or answers requests.
`known` has the holes. Those whose `source` is a changelog are found by this command, in the source
distribution of the locked version; the others are written by hand, because the changelog is
somewhere else or does not say it, and stay as they are.

A release mends a hole if its part of the changelog names a CVE or GHSA number, or has a heading on
security. Of several releases that name a number the lowest counts. The package index is the one
that pip is configured with.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests/data/advisories.json"
LOCK = ROOT / "locks/dev.txt"
DOWNLOAD_TIMEOUT_S = 300
AT_ONCE = 4
MAX_SUMMARY_CHARS = 100
CHANGELOG = "changelog of "

_LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
_FILE = re.compile(
    r"[^/]+/(?:docs?/(?:source/)?)?(?:changelog|changes|history|news|release-notes)(?:\.(?:md|rst|txt))?",
    re.IGNORECASE,
)
_RELEASE = re.compile(
    r"^(?P<mark>#{1,4} +)?(?:[\w-]+ )?[\[`]?v?(?P<version>\d+(?:\.\d+)+)\b(?P<rest>.*)"
    r"(?P<line>\n[=~^-]{3,}$)?",
    re.MULTILINE,
)
_DATE = re.compile(r"\(\w*\s*\d{4}-\d\d")
_NUMBER = re.compile(r"CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3}")
_SECURITY = re.compile(
    r"^(?:#{1,6} .*\bsecurity\b.*|\*\*security\b.*|security\b[\w ]*:?(?:\n[=~^-]{3,})?)$",
    re.MULTILINE | re.IGNORECASE,
)


def main() -> None:
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    # of a package with a version for each Python the last
    locked = dict(_LOCKED.findall(LOCK.read_text(encoding="utf-8")))
    names = sorted(listed["read"])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        changelogs = list(pool.map(lambda name: find_changelog(name, locked[name]), names))
    known = listed["known"]
    for name, (path, text) in zip(names, changelogs, strict=True):
        listed["read"][name] = {"version": locked[name], "changelog": path}
        print(f"{name} {locked[name]}: {path or 'no changelog'}")
        if path:
            known = [one for one in known if not one["source"].startswith(f"{CHANGELOG}{name} ")]
            by_hand = {one["id"] for one in known if one["package"] == name}
            known += [
                one for one in find_holes(name, locked[name], text) if one["id"] not in by_hand
            ]
    listed["known"] = known
    LIST.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def find_changelog(name: str, version: str) -> tuple[str, str]:
    """Return path and text of the changelog in the package's source distribution; two empty texts
    if it has none, or if pip cannot get one."""
    with tempfile.TemporaryDirectory() as folder:
        source = ["--no-binary", name, f"{name}=={version}"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, *source],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=DOWNLOAD_TIMEOUT_S, check=False,
            )  # fmt: skip
        for archive in Path(folder).glob("*.tar.gz"):
            with tarfile.open(archive) as files:
                paths = [path for path in files.getnames() if _FILE.fullmatch(path)]
                for path in sorted(paths, key=lambda path: (path.count("/"), path)):
                    file = files.extractfile(path)
                    text = file.read().decode("utf-8", "replace") if file else ""
                    if _RELEASE.search(text):
                        return path.partition("/")[2], text
    return "", ""


def find_holes(name: str, version: str, changelog: str) -> Iterator[dict[str, str]]:
    """Yield an advisory for each hole that a release mends, by its number; one for a release that
    has a heading on security and no number."""
    first: dict[str, tuple[Version, str]] = {}
    for release, text in _split(changelog):
        if release > Version(version):
            continue  # of a package that this one comes from
        numbers = _NUMBER.findall(text)
        if not numbers and (heading := _SECURITY.search(text)):
            first[f"{name}-{release}"] = release, _summarise(text[heading.end() :])
        for number in numbers:
            if number not in first or release < first[number][0]:
                first[number] = release, _summarise(text[_start_of(text, number) :])
    for number, (release, summary) in first.items():
        yield {
            "id": number,
            "package": name,
            "affected": f"<{release}",
            "summary": summary,
            "source": f"{CHANGELOG}{name} {version}",
        }


def _split(changelog: str) -> Iterator[tuple[Version, str]]:
    heads = [
        head
        for head in _RELEASE.finditer(changelog.replace("\r\n", "\n"))
        if head["mark"] or head["line"] or _DATE.search(head["rest"])
    ]
    for head, following in zip_longest(heads, heads[1:]):
        end = following.start() if following else len(head.string)
        yield Version(head["version"]), head.string[head.end() : end]


def _start_of(text: str, number: str) -> int:
    """Return where the paragraph or the entry begins that names the number."""
    return max(0, *(text.rfind(mark, 0, text.index(number)) for mark in ("\n\n", "\n- ", "\n* ")))


def _summarise(text: str) -> str:
    entry = re.split(r"\n\n|\n[-*] ", text.strip("\n -*"), maxsplit=1)[0]
    line = " ".join(entry.split())
    return line if len(line) <= MAX_SUMMARY_CHARS else line[: MAX_SUMMARY_CHARS - 1] + "…"


if __name__ == "__main__":
    main()
