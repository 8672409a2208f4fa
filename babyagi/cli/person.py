"""A person at the terminal who takes the model's place (`LLM_MODEL=human`)."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from babyagi.cli.text import Style, is_person_there, warn

if TYPE_CHECKING:
    from babyagi.app import AskHuman

END_LINE = b"."


def find_person() -> AskHuman | None:
    """Return what asks the person at the terminal, None when nobody is there."""
    return ask_person if is_person_there() else None


async def ask_person(prompt: str) -> str:
    """Show the prompt and return what is typed, up to a line with a single full stop or the end of
    input."""
    warn("──── the prompt " + "─" * 40, Style.DIM)
    warn(prompt)
    warn(
        "──── your answer; end it with a line that holds only a full stop, or with Ctrl-D "
        + "─" * 8,
        Style.DIM,
    )
    typed = await _read_lines(sys.stdin.fileno())
    return typed.decode("utf-8", "replace")


async def _read_lines(descriptor: int) -> bytes:
    """Read until END_LINE or the end, without a thread, so that a pause or a signal can end the
    waiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()
    typed = bytearray()

    def read() -> None:
        chunk = os.read(descriptor, 65_536)
        typed.extend(chunk)
        lines = bytes(typed).split(b"\n")
        is_ended = END_LINE in lines[:-1]
        if (not chunk or is_ended) and not done.done():
            done.set_result(b"\n".join(lines[: lines.index(END_LINE)] if is_ended else lines))

    loop.add_reader(descriptor, read)
    try:
        return await done
    finally:
        loop.remove_reader(descriptor)
