"""A person at a terminal, and what they could read back from it."""

import io
import json
import re

FIRST_ROW = re.compile(r' {6}[a-z](?:"[^"]*"|\S)* * (?=[|=+@-] )')
LABEL = re.compile(r'\w+(?:\.\w+|\."[^"]*"|\[\d+\])*')
SPELLED = re.compile(r"<U\+([0-9A-F]{4,6})(?: x(\d+))?>")


class Terminal(io.StringIO):
    """Both ends of a terminal: what was typed, and (another one) what was shown."""

    encoding = "utf-8"

    def isatty(self):
        return True


def read_spelled(text):
    return SPELLED.sub(lambda found: chr(int(found[1], 16)) * int(found[2] or 1), text)


def read_rows(shown):
    """(label, lines, mark) of each argument that was shown; the lines of a difference with their
    signs."""
    found: list[tuple[str, list[str], str]] = []
    at = 0
    for row in shown.splitlines():
        first = FIRST_ROW.match(row)
        at = at or (first.end() if first is not None else 0)
        label, mark, text = row[6 : at - 1].strip(), row[at : at + 1], row[at + 2 :]
        if (
            not at
            or row[:6].strip()
            or row[at - 1] != " "
            or mark not in "|:=+-@ "
            or (label and not LABEL.fullmatch(label))
        ):
            continue
        if label:
            found.append((label, [], mark if mark in "|=" else "+"))
        lines = found[-1][1]
        if mark == ":":
            lines[-1] += text
        else:
            lines.append(text if mark in "|=" else mark + text)
    return found


def read_arguments(shown):
    """The arguments of one call, as they were shown, by the way to each."""
    return {
        label: json.loads("".join(lines)) if mark == "=" else read_spelled("\n".join(lines))
        for label, lines, mark in read_rows(shown)
    }


def apply_difference(before, lines):
    """The text that a shown difference makes of the one before."""
    old: list[str] = before.split("\n")
    new: list[str] = []
    for line in lines:
        sign, rest = line[:1], read_spelled(line[1:])
        if sign == "@":
            n = int(re.sub(r"\D", "", rest.split()[0]))
            new, old = [*new, *old[:n]], old[n:]
        elif sign == "+":
            new.append(rest)
        else:
            assert old.pop(0) == rest
            new += [rest] if sign == " " else []
    assert old == []
    return "\n".join(new)
