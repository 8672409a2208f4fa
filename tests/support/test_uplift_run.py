"""`python -m benchmarks.uplift` at its smallest: rows are appended, and what was run is not run
again."""

import json

import pytest

from support.modules import run_module

pytestmark = pytest.mark.system
FEW = "--seed 7 --kinds one --limit 1 --systems direct,ours".split()


def run(rows, *options):
    done = run_module("benchmarks.uplift", "--rows", str(rows), *FEW, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_goes_on_where_it_stopped_and_tells_what_a_system_spent(tmp_path):
    path = tmp_path / "rows.jsonl"
    run(path)
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0]}\n{lines[1][:40]}")  # as if it had been killed while it wrote
    out = run(path)
    again = run(path)

    direct, ours = (json.loads(line) for line in (lines[0], path.read_text().splitlines()[-1]))
    assert [direct["system"], ours["system"]] == ["direct", "ours"]
    assert "1/1" in out.splitlines()[0]
    assert ": right" not in again and "all " in again
    assert direct["calls"] == 1 < ours["calls"]
    for row in (direct, ours):
        assert row["tokens_in"] >= row["tokens_anew"] > 0 < row["tokens_out"]
    assert ours["is_right"]
    assert ours["stop"] in ("finished", "objective_met")
    said = path.with_suffix(".calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in said]
    assert [call["n"] for call in calls if call["system"] == "direct"] == [1]
