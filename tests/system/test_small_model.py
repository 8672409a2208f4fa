"""A real small model through the whole loop, in this program's process and behind llama.cpp's own
HTTP server: what it cannot do ends in words, and nothing that is no answer becomes a result."""

import asyncio
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from itertools import product

import pytest

from babyagi.agents.creation import Finished, create_tasks
from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal
from babyagi.llm.client import Endpoint
from babyagi.llm.learning import LearningModel
from babyagi.llm.llama import Engine, LlamaModel
from babyagi.llm.port import Abilities, ChatModel
from babyagi.tasks import Passage, Result, Role
from support.processes import ROOT, babyagi, environ, rows
from tests.llm.smollm import MODEL, needs_model
from tests.noun import make_task
from tests.test_journal import open_desk

pytestmark = [pytest.mark.system, needs_model, pytest.mark.timeout(900)]

MAX_OUTPUT_TOKENS = 80
PLAN_TOKENS = 300
IS_LONG = bool(os.environ.get("LONG_TESTS"))
N_PLANNED = 20 if IS_LONG else 2  # on each way, with marks that differ from run to run
OBJECTIVES = {
    "fruits": ("Which colours have common fruits?", ["Which colour has a lemon?"], {}),
    "notes": (
        "What do the notes say about backups and about the tower?",
        ["Read backups.md", "How high is the tower?"],
        {
            "backups.md": "Backups are made every night at nine by rsync.",
            "tower.md": "The tower is 41 metres high.",
        },
    ),
    "capital": ("Name the capital of France and its river.", ["Name the river of Paris"], {}),
}
STOPPED = re.compile(r"finished|objective_met|unmet|stalled|failed|limit:\w+")
FINDINGS = [
    ("Find the height of the tower", "The tower is 41 metres high."),
    ("When are backups made?", "Backups are made every night at nine by rsync."),
    ("Which colour has a lemon?", "A lemon is yellow."),
    ("Name the river of Paris", "The river of Paris is the Seine."),
    ("How many rooms has the museum?", "The museum has 12 rooms, of which 3 are closed."),
]


def make_result(task_id, name, text):
    return Result(
        task_id=task_id,
        objective_id=1,
        task_name=name,
        text=text,
        origins=("model:smollm",),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture(scope="module")
def server():
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.llama_server", str(MODEL)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.stdout.readline().strip() + "/v1"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait()


WAYS = ("in process", "over HTTP")


@pytest.fixture(params=WAYS)
def way(request):
    """The variables that name the model."""
    if request.param == "in process":
        return {
            "LLM_MODEL": "llama",
            "LLAMA_MODEL_PATH": str(MODEL),
            "LLAMA_CTX_MAX": "4096",
            "LLAMA_THREADS_NUM": "1",
        }
    return {"LLM_MODEL": "smollm", "OPENAI_BASE_URL": request.getfixturevalue("server")}


@pytest.mark.parametrize(
    ("way", "name"),
    list(product(WAYS, OBJECTIVES) if IS_LONG else zip(WAYS, ("capital", "notes"), strict=True)),
    indirect=["way"],
)
async def test_an_objective_ends_and_only_answers_become_results(tmp_path, way, name):
    text, tasks, notes = OBJECTIVES[name]
    env = environ(
        tmp_path / "home",
        **way,
        OPENAI_TEMPERATURE="0",
        BABYAGI_MAX_OUTPUT_TOKENS=str(MAX_OUTPUT_TOKENS),
        BABYAGI_CONCURRENCY="1",
    )
    (tmp_path / "notes").mkdir()
    for file, content in notes.items():
        (tmp_path / "notes" / file).write_text(content, encoding="utf-8")
    line = ["submit", text, "--max-tasks", "4", "--max-calls", "4"]
    assert (await babyagi(*line, *(["--files", "notes"] if notes else []), env=env)).code == 0
    for task in tasks:
        assert (await babyagi("tasks", "add", task, env=env)).code == 0

    ended = await babyagi("resume", env=env, timeout_s=800)

    (objective,) = rows(tmp_path / "home", "SELECT status, stop_reason FROM objective")
    assert objective["status"] == "ended" and STOPPED.fullmatch(objective["stop_reason"]), (
        ended.said
    )
    found = rows(
        tmp_path / "home",
        "SELECT task.name AS name, result.text AS text FROM result JOIN task "
        "ON task.id = result.task_id AND task.objective_id = result.objective_id",
    )
    for result in found:
        assert not re.search(r"<.?<\w+ \w{4} from", result["text"])
        assert result["text"].strip(), result
    steps = rows(tmp_path / "home", "SELECT key, completion_tokens AS n FROM step WHERE n > 0")
    assert steps and all(step["n"] <= MAX_OUTPUT_TOKENS for step in steps)


async def test_every_planning_reply_can_be_read(way):
    model: ChatModel
    opened: Endpoint | Engine
    known = Abilities(takes_tools=False, holds_schema=True)
    if "OPENAI_BASE_URL" in way:
        opened = Endpoint(base_url=way["OPENAI_BASE_URL"], sleep=asyncio.sleep, random=lambda: 0.5)
        model = LearningModel(
            "smollm", opened, known=known, remember=lambda found: None, temperature=0
        )
    else:
        opened = Engine(MODEL, context_tokens=4096, n_threads=1)
        model = LlamaModel(opened, temperature=0)
    desk = await open_desk()
    backends = Backends(
        store=desk.world.store,
        models={Role.CREATION: model},
        embedder=HashEmbedder(),
        gate=Gate(),
        sleep=desk.world.sleep,
        max_output_tokens=PLAN_TOKENS,
    )
    try:
        for n in range(N_PLANNED):
            name, said = FINDINGS[n % len(FINDINGS)]
            finished = Finished(
                task=make_task(name, id_=n + 2), result=make_result(n + 2, name, said)
            )
            await create_tasks(
                [finished],
                objective=Passage(
                    text=f"Find out {n + 3} facts for the guide of the town", origin="person"
                ),
                known=(),
                journal=Journal(backends, fence=desk.claim.fence, prefix=f"plan/{n}/"),
                max_new_tasks=3,
            )
    finally:
        await opened.close()

    steps = await desk.world.store.steps(desk.claim.task.objective_id, owner=desk.claim.fence.owner)
    replies = [json.loads(step.output)["text"] for step in steps if step.kind == "model"]
    assert len(replies) == N_PLANNED, "a reply that cannot be read is asked for again"
    assert all(isinstance(json.loads(reply)["tasks"], list) for reply in replies)
