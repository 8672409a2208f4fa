"""Model text to typed replies: tolerant in what it reads, and never the inventor of a task, an id
or a word.

JSON is looked for first, anywhere in the text, also as models miswrite it; then tags, tables, keys
and values, and lists, line by line. Prose is none of them. Only the first `MAX_REPLY_CHARS`
characters are read, in linear time.

Does not cover: tool calls, and the text of a task's result, which is kept as it is.
"""

from babyagi.agents.replies.check import CheckReply, CheckReplyPart, parse_check
from babyagi.agents.replies.creation import (
    EXPECTED_TASKS,
    MAX_NAME_CHARS,
    CreationReply,
    ProposedTask,
    UnansweredTask,
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
    "ProposedTask",
    "UnansweredTask",
    "parse_check",
    "parse_creation",
    "parse_order",
    "split_combined",
]
