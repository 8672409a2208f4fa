"""Files that a program of a task wrote come with its result: in the report, on its page, for other
programs, on the command line."""

import json
import re
import sys

import pytest

import babyagi
from babyagi.cli import main
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.reporting.sources import Made, artifacts_shape, render_artifacts
from babyagi.tasks import Artifact
from babyagi.tools.catalog import RUN_PYTHON
from support.scripted import ScriptedModel

CODE = """
import csv
rows = list(csv.reader(open("sales.csv")))
total = sum(int(row[1]) for row in rows[1:])
with open("totals.csv", "w", newline="") as file:
    csv.writer(file).writerows([["what", "eur"], ["<b>all</b>", total]])
with open("plot.svg", "w") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect width="7"/></svg>')
with open("page.svg", "w") as file:
    file.write("<html>")
with open("bars.png", "wb") as file:
    file.write(b"a picture")
print(total)
"""


def clerk(prompt, role):
    agent = prompt.messages[0].text.split()[1]
    if agent == "execution":
        seen = [one for one in prompt.messages if one.speaker is Speaker.TOOL]
        if not seen:
            return (ToolCall(id="c1", name="run_python", arguments=json.dumps({"code": CODE})),)
        return f"The sales are 7 euros, as sales.csv says: {seen[-1].text[:60]!r}"
    return '{"tasks": []}' if agent == "creation" else "The sales are 7 euros."


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text("city,eur\nUlm,3\nBonn,4\n")
    return tmp_path / "home"


@pytest.fixture
def type_in(capsys):
    """What a command prints, also where it fails."""

    def run(*words):
        with pytest.raises(SystemExit):
            main(words)
        said = capsys.readouterr()
        return said.out + said.err

    return run


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="code can be confined on Linux only")
def test_a_table_and_a_plot_of_a_task_are_with_its_result_wherever_that_is_shown(home, type_in):
    outcome = babyagi.run(
        "What are the sales?",
        first_task="Add the sales up",
        model=ScriptedModel(clerk),
        tools=["python"],
        files="data",
        max_tasks=1,
    )

    assert [(one.kind, one.name, one.task_ids) for one in outcome.sources] == [
        ("file", "sales.csv", (1,)),
        ("tool", "run_python", (1,)),
    ]
    assert [(one.name, one.media_type) for one in outcome.artifacts] == [
        ("totals.csv", "text/csv"),
        ("plot.svg", "image/svg+xml"),
    ]
    assert "* `plot.svg` (task 1; image/svg+xml, " in outcome.report
    assert "used the tool run\\_python (task 1)" in outcome.report
    scratch = next((home / "scratch").iterdir()) / "1"
    assert sorted(path.name for path in scratch.glob("[!.]*")) == [
        "bars.png", "page.svg", "plot.svg", "totals.csv",
    ]  # fmt: skip

    page = type_in("report", "--format", "html")
    assert "what,eur\n&lt;b&gt;all&lt;/b&gt;,7\n" in page
    assert re.search(r'<img src="data:image/svg\+xml;base64,[\w+/=]+" alt="plot.svg">', page)
    assert "onload" not in page + type_in("show", "1", "--artifact", "plot.svg")
    assert type_in("show", "1", "--artifact", "totals.csv") == "what,eur\n<b>all</b>,7\n"
    assert "no file 'x'; its files: totals.csv, plot.svg" in type_in("show", "1", "--artifact", "x")
    assert "plot.svg (image/svg+xml, " in type_in("show", "results")
    assert "plot.svg (image/svg+xml, " in type_in("show", "1")
    (result,) = json.loads(type_in("show", "results", "--json"))
    assert [one["name"] for one in result["artifacts"]] == ["totals.csv", "plot.svg"]
    calls = type_in("show", "1", "--full")
    assert "page.svg is stored but not shown with the result: " in calls
    assert [one["name"] for one in json.loads(type_in("status", "--json"))["tools"]] == [
        "list_files", "read_file", "search_files", "run_python",
    ]  # fmt: skip

    type_in("store", "delete", "--objective", "1", "--yes")
    assert [*(home / "scratch").iterdir()] == []


def test_the_tool_whose_files_are_looked_for_is_the_one_that_ships():
    assert f"tool:{RUN_PYTHON}" == "tool:run_python"


def made(name):
    return Made(
        task_id=3,
        artifact=Artifact(name=name, media_type="text/csv", text="é", digest="ab" * 32),
    )


def test_the_section_names_each_file_and_nothing_in_a_name_acts():
    text = render_artifacts([made("a`b\n# c.csv"), made("d.csv")], objective_id=5, most=1)

    assert text == (
        "## Files\n\n* `a'b # c.csv` (task 3; text/csv, 2 bytes, sha256 abababababababab)\n"
        "* and 1 more\n\n`babyagi show TASK --artifact NAME --objective 5` prints one."
    )
    assert render_artifacts([], objective_id=5, most=1) == ""


def test_the_shape_has_no_text():
    assert artifacts_shape([made("d.csv")]) == [
        {
            "task_id": 3,
            "name": "d.csv",
            "media_type": "text/csv",
            "n_bytes": 2,
            "sha256": "ab" * 32,
        }
    ]
