"""A person's walk over the board in a real browser, from the command `open` on: submit, watch,
answer, change the list, read the report; and what a keyboard and a narrow window need."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from babyagi.inbox import QUESTION, write_request
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import ObjectiveStatus, Proposal
from babyagi.taskstore.sqlite import open_sqlite
from support.processes import babyagi, environ, finish, start
from support.workers import join
from tests.cli import homes, samples

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
WAIT_MS = 300_000

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}"),
]


async def fill(home):
    """A paused objective with a question and three tasks, which no worker takes up."""
    offload = ThreadOffload(name="taskstore", n_threads=1)
    store = await open_sqlite(home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload)
    try:
        objective, _ = await store.create_objective(samples.spec("Plan the feast"), uid="u")
        await join(store, homes.WORKER, objective.id)
        claim = await store.claim_task(objective.id, homes.WORKER.id)
        assert claim is not None
        request = write_request("ask_person", {"question": "How many \u202eguests <b>come</b>?"})
        await store.park_task(claim.fence, key="1/execute/1/tool/1", kind=QUESTION, request=request)
        names = ("Write the invitation", "Rent the hall", "Order the cake")
        await store.add_tasks(objective.id, [Proposal(name=name) for name in names])
        await store.switch_objective(objective.id, to=ObjectiveStatus.PAUSED)
        await store.remove_worker(homes.WORKER.id)
    finally:
        await store.close()
        offload.close()


class Server:
    """A server that can be killed, and started again at the same address."""

    def __init__(self, env):
        self.env, self.port = env, "0"

    async def start(self):
        self.process = await start("serve", "--port", self.port, env=self.env)
        assert self.process.stdout is not None
        async with asyncio.timeout(300):
            while b"The board is at" not in (line := await self.process.stdout.readline()):
                assert line
        self.port = line.decode().partition(";")[0].rpartition(":")[2]

    async def kill(self):
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def served(tmp_path):
    """The board as a person opens it, with its server; nobody else may be asked."""
    from playwright.async_api import async_playwright

    home = tmp_path / "home"
    home.mkdir()
    await fill(home)
    env = environ(home, LLM_MODEL="rehearsal", BABYAGI_EMBEDDING_MODEL="hash")
    server = Server(env)
    await server.start()
    try:
        address = (await babyagi("serve", "open", "--print", env=env)).out.strip()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
            page = await (await browser.new_context()).new_page()
            page.set_default_timeout(WAIT_MS)
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            await page.goto(address)
            await page.wait_for_selector("textarea[name=objective]")
            yield page, server
            await browser.close()
        base = address.partition("/open")[0]
        assert [url for url in asked if not url.startswith((f"{base}/", "data:"))] == []
        server.process.terminate()
        await finish(server.process)
    finally:
        if server.process.returncode is None:
            await server.kill()


@asynccontextmanager
async def opened(tmp_path):
    """The board, about which nothing may be complained."""
    async with served(tmp_path) as (page, _):
        complaints = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
        assert complaints == []


def names(page):
    return page.locator(".column:nth-child(1) .card > a").all_text_contents()


async def test_a_person_submits_watches_and_reads_the_report(tmp_path):
    async with opened(tmp_path) as page:
        await page.fill("textarea[name=objective]", "Know it <b>all</b>")
        await page.click("text=Submit")
        # without a reload: the worker of the same process ends it, unmet, for there is no file
        await page.wait_for_selector(".head .chip:has-text('unmet')")
        assert await page.locator("h1 b").count() == 0
        await page.click(".column:nth-child(4) a[data-drawer]")
        await page.wait_for_selector("#drawer h2:text('Steps')")
        await page.click("#drawer .steps summary >> nth=-1")
        await page.keyboard.press("Escape")
        assert await page.locator("#drawer").is_hidden()
        for tab in ("List", "Timeline"):
            await page.click(f".tabs a:has-text('{tab}')")
            await page.wait_for_selector(f".tabs a[aria-current]:has-text('{tab}')")
        assert await page.locator(".timeline a").count() > 0
        await page.click(".tabs a:has-text('Report')")
        await page.wait_for_selector(".paper h1:has-text('Report')")


async def test_a_person_answers_and_changes_the_list(tmp_path):
    async with opened(tmp_path) as page:
        await page.click("nav a:has-text('Inbox')")
        await page.wait_for_selector("mark:has-text('U+202E')")
        await page.fill("textarea[name=text]", "Forty")
        await page.click(".asked button:has-text('Answer')")
        await page.wait_for_selector("text=Nothing waits for you.")

        await page.goto(page.url.replace("/inbox", "/objectives/1"))
        await page.wait_for_selector(".card:has-text('Order the cake')")
        await page.fill(".add input[name=name]", "Sing")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".card:has-text('Sing')")
        # dragged before the first one, and moved down again by its button
        first = await names(page)
        await page.drag_and_drop(
            ".card:has-text('Sing')", ".column:nth-child(1) .card >> nth=0",
            target_position={"x": 20, "y": 3},
        )  # fmt: skip
        await page.wait_for_selector(".column:nth-child(1) .card:nth-child(1):has-text('Sing')")
        # a page that was asked for before the drop may show the old order for a moment
        async with asyncio.timeout(300):
            while await names(page) != [first[-1], *first[:-1]]:
                await asyncio.sleep(0.05)
        await page.click(".card:has-text('Sing') summary")
        await page.click(".card:has-text('Sing') button:text-is('Down')")
        await page.wait_for_selector(".column:nth-child(1) .card:nth-child(2):has-text('Sing')")
        # what ends something is asked about first
        if not await page.locator(".card:has-text('Sing') details[open]").count():
            await page.click(".card:has-text('Sing') summary")
        await page.click(".card:has-text('Sing') summary:text-is('Cancel')")
        await page.click(".card:has-text('Sing') button:text-is('Yes')")
        await page.wait_for_selector(".column:nth-child(5) .card:has-text('Sing')")


async def test_an_open_page_outlives_its_server_and_misses_nothing(tmp_path):
    async with served(tmp_path) as (page, server):
        await page.goto(f"{page.url.rstrip('/')}/objectives/1")
        await page.wait_for_selector("#live.on")
        await page.fill(".add input[name=name]", "Half a sentence")
        await server.kill()
        await page.wait_for_selector("#live.off")
        # nothing is lost that was being written, and nothing is said to be done that is not
        await page.click(".add button")
        await page.wait_for_selector("#trouble:has-text('does not answer')")
        assert await page.input_value(".add input[name=name]") == "Half a sentence"
        offload = ThreadOffload(name="taskstore", n_threads=1)
        home = tmp_path / "home"
        store = await open_sqlite(
            home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
        )
        await store.add_tasks(1, [Proposal(name="Added while it was away")])
        await store.close()
        offload.close()
        await server.start()
        await page.wait_for_selector("#live.on")
        await page.wait_for_selector(".card:has-text('Added while it was away')")
        assert await page.input_value(".add input[name=name]") == "Half a sentence"
        await page.click(".add button")
        await page.wait_for_selector(".card:has-text('Half a sentence')")
        # another browser of the same person, on a phone
        phone = await page.context.new_page()
        phone.set_default_timeout(WAIT_MS)
        await phone.set_viewport_size({"width": 360, "height": 740})
        await phone.goto(page.url)
        await phone.fill(".add input[name=name]", "Added on the way")
        await phone.click(".add button")
        await page.wait_for_selector(".card:has-text('Added on the way')")


async def test_a_schedule_is_added_paused_and_removed(tmp_path):
    async with opened(tmp_path) as page:
        await page.click("nav a:has-text('Schedules')")
        await page.fill("textarea[name=objective]", "Read the news")
        await page.fill("input[name=every]", "1d")
        await page.click("button:has-text('Add')")
        await page.wait_for_selector(".objectives .chip:has-text('active')")
        await page.click("button:has-text('Pause')")
        await page.wait_for_selector(".objectives .chip:has-text('paused')")
        await page.click("summary:has-text('Remove')")
        await page.click("button:has-text('Yes')")
        await page.wait_for_selector("text=No schedule.")


async def test_a_keyboard_is_enough_and_nothing_is_wider_than_a_phone(tmp_path):
    async with opened(tmp_path) as page:
        base = page.url.rstrip("/")
        await page.goto(f"{base}/objectives/1")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
        await page.focus(".card a[data-drawer] >> nth=0")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#drawer h2:text('Steps')")
        await page.keyboard.press("Escape")
        assert await page.evaluate("document.activeElement.matches('.card a[data-drawer]')")
        await page.focus(".tabs a >> nth=0")
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".tabs a[aria-current]:has-text('List')")
        await page.set_viewport_size({"width": 360, "height": 740})
        for end in ("/", "/inbox", "/schedules", "/objectives/1", "/objectives/1/tasks",
                    "/objectives/1/timeline", "/objectives/1/report", "/objectives/1/tasks/1"):  # fmt: skip
            await page.goto(base + end)
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, end
