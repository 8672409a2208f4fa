"""Python that a model wrote, as a tool."""

import asyncio
from hashlib import sha256

import pytest

from babyagi.errors import ToolError
from babyagi.files.folder import Folder
from babyagi.files.private import find_wide
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Artifact, Passage, find_sources
from babyagi.tools.base import Observation
from babyagi.tools.python import build_python, strip_fence

CODE = "final_result = 6 * 7"
WRITTEN = {
    CODE: CODE,
    f"```python\n{CODE}\n```": CODE,
    f"Here it is:\n```\n{CODE}\n```\nIt assigns the result.\n```\nother\n```": CODE,
    f"  ```py\n{CODE}\n  ```  ": CODE,
    f"`{CODE}`": CODE,
    f"```python {CODE}```": f" {CODE}",
    f"```python\n{CODE}```": CODE,
    "```python\nno end": "```python\nno end",
    "a = '```'\nb = 1": "a = '```'\nb = 1",
    "": "",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_fence_around_the_code_is_taken_off(text):
    assert strip_fence(text) == WRITTEN[text]


@pytest.mark.system
async def test_the_result_is_what_the_code_assigned():
    tool = build_python(name="Calculator", description="computes", offload=run_inline)

    passage = await tool.run({"code": f"```python\n{CODE}\nprint('noise')\n```"})

    assert (passage.text, passage.origin) == ("42", "tool:Calculator")
    with pytest.raises(ToolError):
        await tool.run({"code": "open('/etc/passwd')"})


@pytest.mark.system
async def test_a_program_that_is_given_no_files_has_its_own_for_one_call():
    tool = build_python(name="Python", description="computes", offload=run_inline)

    code = "open('a.txt', 'w').write('mine')\nprint(open('a.txt').read())"
    passage = await tool.run({"code": code})

    assert passage.text == "mine\n\nWritten: a.txt (4 bytes)"
    with pytest.raises(ToolError, match="no file of that name here; there are: none"):
        await tool.run({"code": "open('a.txt')"})


@pytest.mark.system
async def test_what_the_code_prints_is_the_answer_and_the_model_is_told_so():
    tool = build_python(name="Python", description="computes", offload=run_inline)

    passage = await tool.run({"code": "for n in range(3):\n    print(n, n ** 2)"})

    assert passage.text == "0 0\n1 1\n2 4"
    # indented as a whole
    assert (await tool.run({"code": "    x = 6\n    if x:\n        x * 7\n    x * 7"})).text == "42"
    assert "What it prints is the answer" in tool.parameters["properties"]["code"]["description"]


# -- with files


def bench_of(tmp_path):
    (tmp_path / "files" / "sub").mkdir(parents=True)
    (tmp_path / "files" / "sales.csv").write_text("city,eur\nUlm,3\nBonn,4\n")
    (tmp_path / "files" / "sub" / "notes.txt").write_text("a note")
    (tmp_path / "files" / ".hidden.csv").write_text("secret")
    (tmp_path / "outside.csv").write_text("secret")
    (tmp_path / "files" / "link.csv").symlink_to(tmp_path / "outside.csv")
    return {
        "offload": run_inline,
        "folder": Folder(tmp_path / "files"),
        "files": tmp_path / "home" / "scratch",
    }


def tool_of(tmp_path):
    tool = build_python(**bench_of(tmp_path), name="run_python", description="computes")
    assert tool.for_call is not None
    return tool.for_call("task:1", "1/execute/1/tool/1")


async def run(tool, code):
    return await tool.run({"code": code})


@pytest.mark.system
async def test_a_program_reads_the_files_of_the_objective_and_the_answer_names_them(tmp_path):
    tool = tool_of(tmp_path)

    passage = await run(
        tool, "import csv\nprint(sum(int(r[1]) for r in [*csv.reader(open('sales.csv'))][1:]))"
    )

    assert passage.text == "7"
    assert passage.origins == ("tool:run_python", "file:sales.csv")
    passage = await run(tool, "import glob\nprint(sorted(glob.glob('**', recursive=True)))")
    assert passage.text == "['sales.csv', 'sub', 'sub/notes.txt']"
    assert set(passage.sources) == {"file:sales.csv", "file:sub/notes.txt"}
    assert (await run(tool, "print(2 + 2)")).origins == ("tool:run_python",)


@pytest.mark.system
async def test_the_files_that_a_program_writes_stay_with_its_task(tmp_path):
    bench = bench_of(tmp_path)
    first, second = (
        build_python(**bench, name="run_python", description="computes").for_call
        for _ in range(2)  # as two workers have it, or one before and after a kill
    )
    assert first is not None
    assert second is not None
    await run(
        first("task:1", "1/execute/1/tool/1"), "open('sub2/a.txt', 'w').write('kept')\nprint(1)"
    )

    later = await run(second("task:1", "2/execute/1/tool/1"), "print(open('sub2/a.txt').read())")

    assert (later.text, later.origins) == ("kept", ("tool:run_python", "scratch:sub2/a.txt"))
    assert find_sources(later.origins) == later.origins
    with pytest.raises(ToolError, match="no file of that name"):
        await run(second("task:2", "1/execute/1/tool/1"), "open('sub2/a.txt')")


@pytest.mark.system
async def test_a_call_whose_outcome_was_lost_finds_the_files_as_they_were_before_it(tmp_path):
    tool = build_python(**bench_of(tmp_path), name="run_python", description="computes")
    add = "open('log.txt', 'a').write('x')\nopen('n.txt', 'w').write('1')\nprint(open('log.txt').read())"
    assert tool.for_call is not None
    first, second = (tool.for_call("task:1", f"1/execute/{n}/tool/1") for n in (1, 2))

    said = [(await run(one, add)).text.split("\n")[0] for one in (first, first, second, second)]
    assert said == ["x", "x", "xx", "xx"]

    await run(second, "import os\nos.remove('log.txt')\nprint(os.path.exists('n.txt'))")
    again = await run(second, "import os\nprint(sorted(os.listdir('.')), open('log.txt').read())")
    assert again.text == "['log.txt', 'n.txt', 'sales.csv', 'sub'] x"


@pytest.mark.system
async def test_calls_side_by_side_each_undo_only_themselves(tmp_path):
    tool = build_python(**bench_of(tmp_path), name="run_python", description="computes")
    assert tool.for_call is not None
    one, other = (tool.for_call("task:1", f"1/execute/1/tool/{n}") for n in (1, 2))
    await asyncio.gather(
        run(one, "open('a.txt', 'a').write('a')"), run(other, "open('b.txt', 'a').write('b')")
    )

    await run(one, "open('a.txt', 'a').write('a')")

    folder = tmp_path / "home" / "scratch" / "1"
    assert [(folder / name).read_text() for name in ("a.txt", "b.txt")] == ["a", "b"]


@pytest.mark.system
async def test_only_the_owner_may_look_at_what_programs_wrote(tmp_path):
    await run(tool_of(tmp_path), "open('a/b.txt', 'w').write('1')")

    assert [*find_wide(tmp_path / "home")] == []
    assert (tmp_path / "home" / "scratch" / "1" / "a" / "b.txt").read_text() == "1"


@pytest.mark.system
async def test_tables_and_plots_come_with_the_answer_and_other_files_do_not(tmp_path):
    tool = tool_of(tmp_path)

    passage = await run(
        tool,
        "open('t.csv', 'w').write('a,b\\n1,2\\n')\n"
        "open('p.svg', 'w').write('<svg><script>1</script><rect width=\"1\"/></svg>')\n"
        "open('bad.svg', 'w').write('<svg>')\n"
        "open('big.txt', 'w').write('x' * 400_000)\n"
        "open('raw.bin', 'wb').write(bytes(9))\nprint('done')",
    )

    by_name = {one.name: one for one in passage.artifacts}
    assert list(by_name) == ["t.csv", "p.svg"]
    assert by_name["t.csv"].text == "a,b\n1,2\n"
    assert by_name["t.csv"].digest == sha256(b"a,b\n1,2\n").hexdigest()
    assert (by_name["p.svg"].media_type, "script" in by_name["p.svg"].text) == (
        "image/svg+xml",
        False,
    )
    assert passage.text.startswith("done\n\nWritten: t.csv (8 bytes), p.svg")
    assert (
        "bad.svg is stored but not shown with the result: the SVG picture is not well-formed XML"
        in passage.text
    )
    assert "big.txt is stored but not shown with the result: the file has more than" in passage.text


@pytest.mark.system
async def test_a_program_that_fails_leaves_nothing(tmp_path):
    tool = tool_of(tmp_path)

    with pytest.raises(ToolError):
        await run(tool, "open('a.txt', 'w').write('1')\n1 / 0")

    assert not (tmp_path / "home" / "scratch").exists()


def test_an_observation_keeps_its_artifacts(tmp_path):
    artifact = Artifact(name="t.csv", media_type="text/csv", text="a", digest="d")
    passage = Passage(text="x", origin="tool:run_python", artifacts=(artifact,))

    assert Observation.from_json(Observation(passage=passage).to_json()).passage == passage
