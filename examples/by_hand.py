"""Compose store, model and loop by hand, and do one task in the folder where this is run."""

import asyncio
from pathlib import Path

from babyagi.app.backends import utc_now
from babyagi.files.folder import Folder
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.search import ResultSearch
from babyagi.journal import Backends, Gate
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Loop
from babyagi.runtime.offload import run_inline
from babyagi.tasks import ObjectiveSpec, Role, Worker
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.tools.files import build_file_tools


async def main() -> None:
    store, index, embedder = MemoryTaskStore(utc_now), BuiltinIndex(), HashEmbedder()
    spec = ObjectiveSpec(text="Read them", initial_task="List the documents", prompt_version="1",
        model_by_role=dict.fromkeys(Role, "rehearsal"), embedding_space=embedder.space)  # fmt: skip
    objective, _ = await store.create_objective(spec, uid="by-hand")
    models, gate = dict.fromkeys(Role, RehearsalModel()), Gate()
    calls = Backends(store=store, models=models, embedder=embedder, gate=gate, sleep=asyncio.sleep)
    search = ResultSearch(store, index, objective=objective)
    indexer = Indexer(store, index, objective=objective)
    tools = build_file_tools(Folder(Path()), offload=run_inline)
    bounds = Bounds(context_tokens=4000, max_output_tokens=2000, max_new_tasks=10)
    loop = Loop(calls, search=search, indexer=indexer, tools=tools, bounds=bounds, clock=utc_now)
    worker = Worker(id="w", name="by-hand", host="here", pid=0, lease_until=utc_now())
    await store.register_worker(worker, lease_s=60)
    await store.join_objective(worker.id, objective.id)
    await loop.run_turn(await store.claim_task(objective.id, worker.id), objective)
    print((await store.results(objective.id))[0].text)


asyncio.run(main())
