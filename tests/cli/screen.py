"""A person at a terminal, and what they could read back from it."""

import io
import json
import re

ROW = re.compile(r" {6}(?P<label>.*?) (?P<mark>[|:=]) ?(?P<text>.*)")
SPELLED = re.compile(r"<U\+([0-9A-F]{4,6})(?: x(\d+))?>")


class Terminal(io.StringIO):
    """Both ends of a terminal: what was typed, and (another one) what was shown."""

    encoding = "utf-8"

    def isatty(self):
        return True


def read_spelled(text):
    return SPELLED.sub(lambda found: chr(int(found[1], 16)) * int(found[2] or 1), text)


def read_rows(shown):
    """(label, lines, is_text) of each argument that was shown."""
    found: list[tuple[str, list[str], bool]] = []
    for row in shown.splitlines():
        match = ROW.fullmatch(row)
        if match is None:
            continue
        if match["label"].strip():
            found.append((match["label"].strip(), [], match["mark"] == "|"))
        lines = found[-1][1]
        if match["mark"] == ":":
            lines[-1] += match["text"]
        else:
            lines.append(match["text"])
    return found


def read_arguments(shown):
    """The arguments of one call, as they were shown, by the way to each."""
    return {label: read_spelled("\n".join(lines)) if is_text else json.loads("".join(lines)) for label, lines, is_text in read_rows(shown)}


def apply_difference(before, lines):
    """The text that a shown difference makes of the one before."""
    old: list[str] = before.split("\n")
    new: list[str] = []
    for line in lines:
        sign, rest = line[:1], read_spelled(line[1:])
        if sign == "@":
            n = int(re.sub(r"\D", "", rest))
            new, old = [*new, *old[:n]], old[n:]
        elif sign == "+":
            new.append(rest)
        else:
            assert old.pop(0) == rest
            new += [rest] if sign == " " else []
    assert old == []
    return "\n".join(new)
