"""The quotes of a rehearsal's report, and whether they stand where it says."""

import re

QUOTE = re.compile(r'^- "(.+)" \(([^()\n]+):(\d+)\)', re.MULTILINE)


def cited(text, folder):
    """The quotes of a text as (words, file, line), each of which really stands where it says."""
    quotes = QUOTE.findall(text)
    for said, name, line in quotes:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
        read = [line for line in lines[:40] if not line.lstrip(" >").startswith("```")]
        assert _letters(said.removesuffix("…")) in _letters("".join(read))
    return set(quotes)


def _letters(text):
    return re.sub(r"[\W_]", "", text)
