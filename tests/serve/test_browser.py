"""The board in a real browser, from the command `open` on."""

import asyncio
import shutil

import pytest

from support.processes import babyagi, environ, finish, start

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_MS = 30_000


@pytest.mark.system
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
async def test_a_person_submits_watches_and_changes_an_objective_in_a_browser(tmp_path):
    from playwright.async_api import async_playwright

    env = environ(tmp_path / "home", LLM_MODEL="rehearsal", BABYAGI_EMBEDDING_MODEL="hash")
    process = await start("serve", "--port", "0", env=env)
    complaints: list[str] = []
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"The board is at" not in (line := await process.stdout.readline()):
                assert line
        opened = (await babyagi("open", "--print", env=env)).out.strip()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox"]
            )
            page = await browser.new_page()
            page.set_default_timeout(WAIT_MS)
            page.on("console", lambda said: complaints.append(said.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(opened)
            await page.wait_for_selector("textarea[name=objective]")
            await page.fill("textarea[name=objective]", "Know it <b>all</b>")
            await page.click("text=Submit")
            # without a reload: the worker of the same process ends it
            await page.wait_for_selector("p.state strong:text('finished')")
            await page.click("a[data-drawer]")
            await page.wait_for_selector("#drawer h2:text('Steps')")
            await page.keyboard.press("Escape")
            assert await page.locator("#drawer").is_hidden()
            await page.fill("input[name=name]", "Sing")
            await page.click("text=Add >> nth=-1")
            await page.wait_for_selector(".card:has-text('Sing')")
            assert await page.locator("h1 b").count() == 0
            await browser.close()
        process.terminate()
        await finish(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert complaints == []
