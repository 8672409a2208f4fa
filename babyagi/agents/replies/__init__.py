"""Turns the text of models into typed replies. It is tolerant in what it reads, and never invents a
task, an id or a word.

It looks for JSON first, anywhere in the text and also malformed; then line by line for tags,
tables, keys and values, and lists. Prose is none of these. Only the first `MAX_REPLY_CHARS`
characters are read, in linear time.

Does not cover: tool calls, and the text of a task's result, which is kept as it is.
"""

from babyagi.agents.replies.check import CheckReply, CheckReplyPart, parse_check
from babyagi.agents.replies.creation import (
    EXPECTED_TASKS,
    MAX_NAME_CHARS,
    CreationReply,
    parse_creation,
    split_combined,
)
from babyagi.agents.replies.order import SHOWN_NAME_CHARS, parse_order
from babyagi.agents.replies.reading import MAX_REASON_CHARS, MAX_REPLY_CHARS

__all__ = [
    "EXPECTED_TASKS",
    "MAX_NAME_CHARS",
    "MAX_REASON_CHARS",
    "MAX_REPLY_CHARS",
    "SHOWN_NAME_CHARS",
    "CheckReply",
    "CheckReplyPart",
    "CreationReply",
    "parse_check",
    "parse_creation",
    "parse_order",
    "split_combined",
]
