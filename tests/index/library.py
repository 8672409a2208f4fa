"""An objective with results to search in, in the memory task store."""

import copy
from datetime import UTC, datetime

from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.tasks import Limits, ObjectiveSpec, Proposal, Role, Worker
from babyagi.taskstore.nouns import Planned
from babyagi.taskstore.sqlite import MemoryTaskStore
from support.workers import join

START = datetime(2030, 1, 1, tzinfo=UTC)
TEXTS = {
    "Bakery": "The revenue of the bakery rose by twelve percent after the new oven was installed.",
    "Database": (
        "Moving the customer database took nine hours because of an index on the orders table."
    ),
    "Trails": "Three hiking trails near the lake are closed until the bridge is repaired.",
    "Vaccine": (
        "The vaccine trial enrolled four hundred volunteers and saw no serious adverse events."
    ),
    "Solar": "Solar panels on the school roof produce enough electricity for the gymnasium.",
    "Leak": "A memory leak in the thumbnail service was traced to an unclosed file handle.",
    "Museum": "The museum extends its opening hours for the exhibition of medieval manuscripts.",
    "Tomato": "Tomato seedlings should be hardened off for a week before planting them outside.",
    "Train": "The timetable changes in December and the night train to Vienna is cancelled.",
    "Cookies": "The penetration test found that session cookies lack the secure flag.",
}


class Embedding:
    """Embeds by hashing, and remembers what it was asked. `error` is raised instead when it is
    set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.embedder = HashEmbedder()

    async def __call__(self, texts):
        if self.error is not None:
            raise self.error
        self.asked += texts
        return (await self.embedder.embed(texts))[0]


class LaggingIndex(BuiltinIndex):
    """Reads see what was written before the last `catch_up`, which is given as the way to sleep."""

    is_memory = False
    read_lag_s = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.slept_s: list[float] = []
        self.seen = BuiltinIndex()

    async def catch_up(self, slept_s):
        self.slept_s.append(slept_s)
        self.seen._collections = copy.deepcopy(self._collections)

    async def ids(self, collection):
        return await self.seen.ids(collection)

    async def query(self, collection, vector, *, k):
        return await self.seen.query(collection, vector, k=k)


class Busy:
    """A task store, or an index, that finds others at work: before each call of the named method
    they carry `work` out."""

    def __init__(self, inner, *, method, work):
        self._inner, self._method, self._work = inner, method, work

    def __getattr__(self, name):
        called = getattr(self._inner, name)
        if name != self._method:
            return called

        async def after_the_others(*args, **options):
            await self._work()
            return await called(*args, **options)

        return after_the_others


def make_busy(inner, *, method, work):
    return Busy(inner, method=method, work=work)


async def open_library(texts=TEXTS):
    """A store with one objective whose results are `texts` (task name → text), in this order; none
    is indexed."""
    store = MemoryTaskStore(lambda: START)
    return store, await fill_library(store, texts)


async def fill_library(store, texts, *, uid="0a1b2c3d", **more):
    """Add the objective and its results to the store, and return the objective. `more` are fields
    of its spec."""
    names = list(texts)
    spec = ObjectiveSpec(
        text="Read everything",
        initial_task=next(iter(texts), "Begin"),
        limits=Limits(max_tasks=0, max_time_s=0),
        model_by_role={Role.EXECUTION: "rehearsal"},
        **{"embedding_space": HashEmbedder().space, "prompt_version": "1", **more},
    )
    objective, _ = await store.create_objective(spec, uid=uid, always_new=True)
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=START)
    await join(store, worker, objective.id, lease_s=60)
    await store.add_tasks(objective.id, [Proposal(name=name) for name in names[1:]])
    for _ in names:
        await add_result(store, objective, texts)
    return objective


async def add_result(store, objective, texts) -> None:
    """Carry out the next task of the list."""
    claim = await store.claim_task(objective.id, "w")
    await store.record_result(
        claim, text=texts[claim.task.name], origins=("model:rehearsal",), plan=Planned()
    )


async def id_by_name(store, objective) -> dict[str, int]:
    return {result.task_name: result.task_id for result in await store.results(objective.id)}


async def vectors_of(store, objective):
    """All stored vectors of the objective, by task id."""
    return await store.vectors(
        objective.id,
        space=objective.spec.embedding_space,
        task_ids=await store.result_ids(objective.id),
    )
