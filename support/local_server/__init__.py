"""A local OpenAI-compatible server for tests and benchmarks, with every fault of
`tests/data/llm_faults.json`."""

from support.local_server.answers import (
    Answerer,
    agree_answer,
    agreeing,
    echo_answer,
    rehearsal_answer,
)
from support.local_server.dialects import Answer, ChatRequest
from support.local_server.faults import FAULTS, Fault, applies_to, fault_named
from support.local_server.server import LocalServer, Record

__all__ = [
    "FAULTS",
    "Answer",
    "Answerer",
    "ChatRequest",
    "Fault",
    "LocalServer",
    "Record",
    "agree_answer",
    "agreeing",
    "applies_to",
    "echo_answer",
    "fault_named",
    "rehearsal_answer",
]
