"""Seven pictures of the board, in docs/screens/: a store is filled as workers would, `serve` is
started on it, and Chromium looks at its pages. With --measure the time that a page of an objective
with 10,000 tasks takes is printed instead.

python -m benchmarks.board_screens
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi.inbox import APPROVAL, QUESTION, write_request
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import (
    Duty,
    Effect,
    Lack,
    Limits,
    ObjectiveSpec,
    ObjectiveStatus,
    Proposal,
    Reservation,
    Role,
    ToolGrant,
    Unanswered,
    Usage,
    Worker,
)
from babyagi.taskstore.nouns import Intention, Kept, Outcome, Planned
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.processes import ROOT, babyagi, environ, finish, start
from support.workers import join

if TYPE_CHECKING:
    from playwright.async_api import Browser

FOLDER = ROOT / "docs" / "screens"
CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
WIDE, PHONE = (1200, 780), (360, 740)
MODEL = "gpt-6-luna"
OBJECTIVE = "Which job queue for Python should our team of four use, and what would it cost us?"
FOUND = (
    (
        "Find out what the team needs of a job queue",
        "Four needs stand in `needs.md`:\n\n1. retries with a delay that grows\n2. no further "
        "server beside PostgreSQL\n3. a page on which a person sees what waits\n4. jobs that "
        "survive a restart\n\nAbout **12,000 jobs a day**, the longest takes nine minutes.",
    ),
    (
        "List the job queues for Python that are maintained",
        "Seven are: Celery, RQ, Dramatiq, Huey, SAQ, Procrastinate, arq. arq is in maintenance "
        "only since 2025.",
    ),
    (
        "Which of them keep jobs in PostgreSQL alone?",
        "| queue | PostgreSQL alone |\n| --- | --- |\n| Procrastinate | yes |\n| SAQ | yes, since "
        "0.20 |\n| the others | no |\n",
    ),
    (
        "How do Procrastinate and SAQ retry a job?",
        "Both retry with a delay that grows; SAQ asks for a function of its own where the delay is "
        "to be bounded.",
    ),
    ("What does the page of SAQ show?", "Queues, workers, and the arguments of each job."),
    ("Measure how many jobs a second each takes", "Procrastinate 410/s, SAQ 690/s on one core."),
)
WAITING = (
    "Compare the licences of the two",
    "How much would a move from cron cost in days of work?",
    "Which of the two is easier to test without a server?",
    "What happens to a job whose worker is killed?",
    "Find three teams that report on a move to Procrastinate",
    "Write the recommendation as one page",
)
OTHERS = (
    "Summarize what changed in PostgreSQL 18 for people who run it",
    "Check each link of our handbook, and say which page to mend first",
    "What do our customers ask most often? Read the exported tickets",
)


@dataclass
class Clock:
    """Time that goes on only when it is told to."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=4))

    def __call__(self) -> datetime:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def _spec(text: str, first: str) -> ObjectiveSpec:
    roles = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)
    return ObjectiveSpec(
        text=text,
        initial_task=first,
        limits=Limits(max_cost_usd=2.0),
        model_by_role={**dict.fromkeys(roles, MODEL), Role.EMBEDDING: "hash"},
        tools=(ToolGrant(name="write_file", effect=Effect.IDEMPOTENT),),
        embedding_space="hash/1",
        prompt_version="1",
    )


@asynccontextmanager
async def _open(home: Path, clock: Clock) -> AsyncIterator[TaskStore]:
    offload = ThreadOffload(name="taskstore", n_threads=1)
    store = await open_sqlite(home / "tasks.db", clock=clock, offload=offload)
    try:
        yield store
    finally:
        await store.close()
        offload.close()


# -- a store with something in it
# --------------------------------------------------------------------------------------------------


async def fill(home: Path) -> None:
    """One objective in the middle of its work, and some others."""
    clock = Clock()
    async with _open(home, clock) as store:
        for n, text in enumerate(OTHERS):
            other, _ = await store.create_objective(_spec(text, "Begin"), uid=f"o{n}")
            if n == 1:
                await store.switch_objective(other.id, to=ObjectiveStatus.PAUSED)
            clock.wait(86_400 + 3600 * n)
        clock.at = datetime.now(UTC) - timedelta(minutes=5, seconds=20)
        objective, _ = await store.create_objective(_spec(OBJECTIVE, FOUND[0][0]), uid="main")
        await _work(store, clock, objective.id)
        now = datetime.now(UTC)
        clock.at = max(clock.at, now)
        for name in ("anna", "bert"):  # at work still
            await store.renew_lease(name, lease_s=600)


async def _work(store: TaskStore, clock: Clock, id_: int) -> None:
    for name in ("anna", "bert"):
        worker = Worker(id=name, name=name, host="desk", pid=1, lease_until=clock.at)
        await join(store, worker, id_, lease_s=3600)
    await _answer(store, clock, id_, 0, then=[FOUND[1][0], FOUND[2][0], FOUND[3][0]])
    for n in (1, 2, 3):
        await _answer(store, clock, id_, n, then=[FOUND[4][0], FOUND[5][0]] if n == 2 else [])
    names = [Proposal(name=name, parent_id=3 if n % 2 else 4) for n, name in enumerate(WAITING)]
    await _answer(store, clock, id_, 4, then=names)
    await _answer(store, clock, id_, 5, then=["Read the contract with the host"])
    await _ask(store, clock, id_)
    claim = await store.claim_task(id_, "bert")
    assert claim is not None
    await store.fail_task(claim, error="the model gave no answer in three replies", max_failures=1)
    claim = await store.claim_task(id_, "anna")
    assert claim is not None
    await _call(store, clock, claim, "1/execute/1/model", 24)


async def _answer(store: TaskStore, clock: Clock, id_: int, n: int, *, then: Any) -> None:
    worker = ("anna", "bert")[n % 2]
    claim = await store.claim_task(id_, worker)
    assert claim is not None
    if n:
        kept = '{"excerpts": [{"task_id": 1, "score": 0.82, "reason": "near", "text": "…"}]}'
        await store.record_step(
            claim.fence, Kept(key="1/inputs", kind="inputs", request_hash="", output=kept)
        )
    await _call(store, clock, claim, "1/execute/1/model", 19 + 7 * n)
    clock.wait(3)
    if n == 3:
        await store.record_lack(claim, lack=Lack(what=LACK))
    else:
        text = next(text for name, text in FOUND if name == claim.task.name)
        await store.record_result(claim, text=text, origins=["model", "file:needs.md"])
    proposals = [
        one if isinstance(one, Proposal) else Proposal(name=one, parent_id=claim.task.id)
        for one in then
    ]
    if n == 3:
        proposals = [Proposal(name="Fetch what SAQ says of retries", parent_id=claim.task.id)]
    duty = await store.claim_duty(id_, worker, Duty.PLAN)
    assert duty is not None
    unanswered = (
        Unanswered(task_id=claim.task.id, lack=LACK, after=tuple(one.name for one in proposals)),
    )
    plan = Planned(proposals=tuple(proposals), unanswered=unanswered if n == 3 else ())
    await store.record_plan(duty, task_ids=[claim.task.id], plan=plan)


async def _call(store: TaskStore, clock: Clock, claim: Any, key: str, took_s: float) -> None:
    intention = Intention(
        key=key,
        kind="model",
        request_hash="ab",
        reservation=Reservation(calls=1, tokens=9000, cost_usd=0.02),
        model=MODEL,
    )
    await store.intend_step(claim.fence, intention=intention)
    clock.wait(took_s)
    usage = Usage(
        calls=1, prompt_tokens=3100 + 90 * int(took_s), completion_tokens=640, cost_usd=0.0131
    )
    await store.record_step(
        claim.fence, Outcome(key=key, output='{"text": "an answer"}', usage=usage, model=MODEL)
    )


async def _ask(store: TaskStore, clock: Clock, id_: int) -> None:
    """A question, and a call that a person is to allow."""
    claim = await store.claim_task(id_, "bert")
    assert claim is not None
    await _call(store, clock, claim, "1/execute/1/model", 15)
    question = {"question": "The needs name no budget. May a hosted queue cost up to 50 € a month?"}
    await store.park_task(
        claim.fence,
        key="1/execute/1/tool/1",
        kind=QUESTION,
        request=write_request("ask_person", question),
    )
    claim = await store.claim_task(id_, "anna")
    assert claim is not None
    await _call(store, clock, claim, "1/execute/1/model", 21)
    arguments = {
        "path": "needs.md",
        "text": NEEDS.replace("9 minutes", "nine minutes") + MORE,
        "replace": True,
    }
    await store.park_task(
        claim.fence,
        key="1/execute/1/tool/1",
        kind=APPROVAL,
        request=write_request("write_file", arguments),
    )


NEEDS = """# What we need of a job queue

- retries with a delay that grows
- no further server beside PostgreSQL
- a page on which a person sees what waits
- jobs that survive a restart

The longest job takes 9 minutes.
"""
LACK = "the page of SAQ on retries"
MORE = "\nAbout 12,000 jobs a day, most of them at night.\n"


async def fill_much(home: Path, n_tasks: int) -> None:
    async with _open(home, Clock()) as store:
        objective, _ = await store.create_objective(_spec("Much", "Begin"), uid="m")
        names = [
            Proposal(name=f"Look at part {n} of the list", parent_id=1)
            for n in range(2, n_tasks + 1)
        ]
        for at in range(0, len(names), 500):
            await store.add_tasks(objective.id, names[at : at + 500])


# -- a server and a browser
# --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(home: Path, **more: str) -> AsyncIterator[str]:
    """A server that does not work; gives the address that opens its board once."""
    env = environ(home, LLM_MODEL="rehearsal", BABYAGI_EMBEDDING_MODEL="hash", **more)
    process = await start("serve", "--no-work", "--port", "0", env=env)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"The board is at" not in (line := await process.stdout.readline()):
                assert line, "the server has ended"
        yield (await babyagi("serve", "open", "--print", env=env)).out.strip()
    finally:
        process.terminate()
        await finish(process)


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    size: tuple[int, int] = WIDE
    is_dark: bool = False
    click: str = ""
    scroll: str = ""


PICTURES = (
    Picture("board-objectives", "/"),
    Picture("board-columns", "/objectives/4"),
    Picture("board-task-dark", "/objectives/4", is_dark=True, click=".column:nth-child(4) .card a"),
    Picture("board-timeline", "/objectives/4/timeline"),
    Picture("board-inbox", "/inbox"),
    Picture("board-report", "/objectives/4/report"),
    Picture("board-phone", "/objectives/4", size=PHONE),
)


async def take(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        home, files = Path(place) / "home", Path(place) / "files"
        files.mkdir()
        (files / "needs.md").write_text(NEEDS, encoding="utf-8")
        home.mkdir()
        await fill(home)
        async with serving(home, BABYAGI_FILES=str(files)) as address, browsing() as browser:
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(address)
            await page.wait_for_selector("h1")
            base = page.url.rstrip("/")
            for one in PICTURES:
                await page.set_viewport_size({"width": one.size[0], "height": one.size[1]})
                await page.emulate_media(color_scheme="dark" if one.is_dark else "light")
                await page.goto(base + one.path)
                if one.click:
                    await page.click(one.click)
                    await page.wait_for_selector("#drawer h1")
                    await page.wait_for_timeout(300)
                if one.scroll:
                    await page.locator(one.scroll).scroll_into_view_if_needed()
                await page.wait_for_selector("#live.on")
                await page.screenshot(path=folder / f"{one.name}.png")
                print(
                    f"{one.name}.png  {(folder / f'{one.name}.png').stat().st_size / 1000:.0f} kB"
                )


async def measure(n_tasks: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        home.mkdir()
        await fill_much(home, n_tasks)
        async with serving(home) as address, browsing() as browser:
            page = await browser.new_page()
            await page.goto(address)
            await page.wait_for_selector("h1")
            base = page.url.rstrip("/")
            for path in (
                "/",
                *(f"/objectives/1{end}" for end in ("", "/tasks", "/timeline", "/report")),
            ):
                begun = time.perf_counter()
                await page.goto(base + path)
                took_s = time.perf_counter() - begun
                n = await page.evaluate("document.querySelectorAll('*').length")
                print(f"{path:24} {took_s * 1000:6.0f} ms  {n:6,} elements")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="time a large objective instead")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    asyncio.run(measure(given.tasks) if given.measure else take(given.folder))


if __name__ == "__main__":
    main()
