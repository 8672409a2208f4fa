"""`babyagi demo` on documents that nobody wrote for it: what installed packages say about
themselves."""

from importlib.metadata import distribution

import pytest

from support.processes import babyagi, environ, look
from tests.quotes import cited

pytestmark = pytest.mark.system

QUESTION = "How is it installed, and what does it support?"
PACKAGES = (
    ("chromadb", "click", "numpy", "openai", "platformdirs", "pytest", "python-dotenv", "rich"),
    tuple(
        (
            "build genai-prices hypothesis import-linter pytest-asyncio pytest-timeout pytest-xdist "
            "ruff"
        ).split()
    ),
)


def write_descriptions(folder, packages):
    folder.mkdir()
    for package in packages:
        _, _, text = (distribution(package).read_text("METADATA") or "").partition("\n\n")
        assert len(text) > 500, package
        (folder / f"{package}.md").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.timeout(600)
async def test_the_demo_reads_two_folders_and_gives_two_true_reports(tmp_path):
    quotes = []
    for name, packages in zip("ab", PACKAGES, strict=True):
        folder = write_descriptions(tmp_path / name, packages)
        env = environ(tmp_path / "home")

        ended = await babyagi("demo", str(folder), "--question", QUESTION, env=env)

        assert ended.code == 0, ended.said
        assert ended.err.startswith("REHEARSAL: no language model was asked")
        tasks = await look("tasks", env=env)
        results = await look("show", "results", env=env)
        assert len(tasks) == len(results) >= 1
        assert {task["status"] for task in tasks} == {"done"}
        report = (await look("report", env=env))["markdown"]
        assert "REHEARSAL" in report
        quotes.append(cited(report, folder))
        assert len(quotes[-1]) >= 5
        assert all(
            cited(result["result"], folder) or result["result"].startswith("Not found in ")
            for result in results
            if result["task"].startswith("Read ")
        )

    assert not quotes[0] & quotes[1]
    assert len(await look("show", "objectives", env=env)) == 2
