"""Every limit ends a run before it is passed, by the server's own count; and a claim that the
objective is met is checked, once."""

import json
from itertools import count

import pytest

from support.local_server import Answer, LocalServer, agree_answer
from support.processes import babyagi, environ, look, rows

pytestmark = pytest.mark.system

PRICE_IN, PRICE_OUT = 20.0, 60.0  # US dollars for a million tokens
PRICE = f"{PRICE_IN}/{PRICE_OUT}"


def never_done():
    """A model that proposes ten new tasks for every result, for ever."""
    numbers = count(1)

    def answer(request):
        match request.agent:
            case "creation":
                tasks = [
                    {"name": f"Look at item number {next(numbers)}", "after": []} for _ in range(10)
                ]
                return Answer(text=json.dumps({"tasks": tasks, "objective_met": False}))
            case "prioritization":
                return Answer(text=json.dumps({"order": [3, 2, 1]}))
            case agent:
                n = next(numbers)
                return Answer(
                    text=f"What the {agent} agent found: "
                    + " ".join(f"line {n} is {n * line}," for line in range(20))
                )

    return answer


def claims_met():
    """A model that claims at its first result that the objective is met, beside three more tasks,
    and agrees."""
    claims = iter([True])

    def answer(request):
        match request.agent:
            case "creation":
                is_first = next(claims, False)
                names = ["Rest one", "Rest two", "Rest three"] if is_first else []
                return Answer(
                    text=json.dumps(
                        {
                            "tasks": [{"name": name, "after": []} for name in names],
                            "objective_met": is_first,
                        }
                    )
                )
            case "check":
                return agree_answer(request)
            case "prioritization":
                return Answer(text=json.dumps({"order": []}))
            case agent:
                return Answer(text=f"The {agent} agent's words.")

    return answer


def spent_at(server):
    """What the server itself counted."""
    n_in = sum(record.prompt_tokens for record in server.requests)
    n_out = sum(record.completion_tokens for record in server.requests)
    return {
        "calls": len(server.requests),
        "tokens": n_in + n_out,
        "cost": (n_in * PRICE_IN + n_out * PRICE_OUT) / 1e6,
    }


async def check_the_end(env, reason, n_tasks_at_most):
    status = await look("status", env=env)
    report = (await look("report", env=env))["markdown"]
    results = await look("show", "results", env=env)
    assert status["stop_reason"] == f"limit:{reason}"
    assert status["held"] == {"calls": 0, "tokens": 0, "cost_usd": 0.0}
    assert f"Stopped: limit:{reason}" in report
    assert ("## Not done" in report) is (status["tasks"]["queued"] > 0)
    assert "babyagi extend" in report
    assert len(results) == status["tasks"]["done"] + status["tasks"]["recorded"] <= n_tasks_at_most
    return status


@pytest.mark.parametrize(
    ("flag", "limit", "reason"),
    [
        ("--max-tasks", 7, "tasks"),
        ("--max-calls", 14, "calls"),
        ("--max-calls", 1, "calls"),
        ("--max-tokens", 30_000, "tokens"),
        ("--max-cost", 0.9, "cost"),
    ],
    ids=["tasks", "calls", "one call", "tokens", "cost"],
)
async def test_a_model_that_proposes_ten_tasks_for_ever_is_stopped_by_the_limit(
    flag, limit, reason, tmp_path
):
    home = tmp_path / "home"
    async with LocalServer(never_done(), latency_s=0.02) as server:
        env = environ(home, server.base_url, BABYAGI_PRICE=PRICE)
        no_other = [
            text for name in ("tasks", "cost") if name != reason for text in (f"--max-{name}", "0")
        ]

        ended = await babyagi("run", "Never be done", flag, str(limit), *no_other, env=env)

    assert ended.code == 3, ended.said
    status = await check_the_end(env, reason, limit if reason == "tasks" else 1000)
    spent = spent_at(server)
    assert status["usage"]["calls"] == spent["calls"]
    assert (
        status["usage"]["prompt_tokens"] + status["usage"]["completion_tokens"] == spent["tokens"]
    )
    assert status["usage"]["cost_usd"] == pytest.approx(spent["cost"], abs=1e-6 * spent["calls"])
    assert (spent[reason] if reason != "tasks" else status["tasks"]["done"]) <= limit
    if reason == "calls" and limit > 1:
        assert (len(server.requests), server.requests[-1].agent) == (limit, "report")
    if reason != "tasks":
        assert limit == 1 or spent[reason] >= limit / 4, "it ended long before its limit"
    else:
        assert status["tasks"]["done"] == limit


async def test_the_limit_of_time_ends_the_run_with_a_report(tmp_path):
    async with LocalServer(never_done(), latency_s=0.1) as server:
        env = environ(tmp_path / "home", server.base_url)

        ended = await babyagi(
            "run", "Never be done", "--max-tasks", "0", "--max-time", "2s", env=env
        )

    assert ended.code == 3, ended.said
    status = await check_the_end(env, "time", 1000)
    assert status["usage"]["time_s"] >= 2
    assert server.requests[-1].agent == "report"


async def test_a_limit_of_money_without_a_price_is_refused_before_any_call(tmp_path):
    home = tmp_path / "home"
    async with LocalServer(never_done()) as server:
        ended = await babyagi(
            "run",
            "x",
            "--max-cost",
            "2",
            env=environ(home, server.base_url, LLM_MODEL="of-no-known-price"),
        )

    assert ended.code == 2
    assert "BABYAGI_PRICE" in ended.err
    assert server.requests == []
    assert rows(home, "SELECT id FROM objective") == []


async def test_a_raised_limit_goes_on_where_it_stopped(tmp_path):
    async with LocalServer(never_done()) as server:
        env = environ(tmp_path / "home", server.base_url)
        assert (await babyagi("run", "Never be done", "--max-tasks", "3", env=env)).code == 3
        first = await look("show", "results", env=env)

        extended = await babyagi("extend", "--max-tasks", "6", env=env)
        resumed = await babyagi("resume", env=env)

    assert extended.code == 0, extended.said
    assert resumed.code == 3, resumed.said
    results = await look("show", "results", env=env)
    assert results[:3] == first
    assert len(results) == 6
    assert server.calls_by_agent["execution"] == 6
    assert server.calls_by_agent["report"] == 2


async def test_a_claim_that_the_check_agrees_with_ends_the_run(tmp_path):
    async with LocalServer(claims_met()) as server:
        env = environ(tmp_path / "home", server.base_url)

        ended = await babyagi("run", "Be met at once", env=env)

    status = await look("status", env=env)
    report = (await look("report", env=env))["markdown"]
    assert ended.code == 0, ended.said
    assert status["stop_reason"] == "objective_met"
    assert (status["tasks"]["done"], status["tasks"]["cancelled"], status["tasks"]["queued"]) == (
        1,
        3,
        0,
    )
    assert server.calls_by_agent["check"] == 2
    assert server.calls_by_agent["execution"] == 1
    assert "## Cancelled (3)" in report
    for name in ("Rest one", "Rest two", "Rest three"):
        assert name in report


async def test_a_model_that_says_the_same_for_ever_stalls_and_goes_on_with_the_commands_it_names(
    tmp_path,
):
    first = iter(
        [
            [f"Look at item number {n}" for n in range(9)],
            [f"Ask person number {n}" for n in range(9)],
        ]
    )

    def answer(request):
        if request.agent == "creation":
            tasks = [{"name": name, "after": []} for name in next(first, [])]
            return Answer(text=json.dumps({"tasks": tasks, "objective_met": False}))
        return Answer(
            text='{"order": []}' if request.agent == "prioritization" else "Nothing was found."
        )

    async with LocalServer(answer) as server:
        env = environ(tmp_path / "home", server.base_url)
        ended = await babyagi("run", "Find it", "--concurrency", "1", env=env)
        status = await look("status", env=env)
        report = (await look("report", env=env))["markdown"]
        extended = await babyagi("extend", "--objective", "1", "--max-tasks", "50", env=env)
        resumed = await babyagi("resume", "--objective", "1", "--concurrency", "1", env=env)
        after = await look("status", env=env)

    assert ended.code == 6, ended.said
    assert status["stop_reason"] == "stalled"
    assert 2 + 5 <= status["tasks"]["done"] <= 2 + 5 + 2  # planned from together
    for said in (ended.said, report):
        assert (
            "the last 5 tasks brought no new task, and their results nearly equal earlier ones"
            in said
        )
        assert "babyagi extend --objective 1 --max-tasks 50" in said
        assert "babyagi resume --objective 1" in said
    assert extended.code == 0, extended.said
    assert resumed.code == 6, resumed.said
    assert 5 <= after["tasks"]["done"] - status["tasks"]["done"] <= 5 + 2


@pytest.mark.parametrize(
    "said",
    [{"prompt_tokens": 500, "completion_tokens": 10**6}, None],
    ids=["a huge count", "nothing"],  # every way of saying it: tests/faults/usages.py
)
async def test_no_call_begins_after_an_answer_whose_cost_cannot_be_held_under_the_limit(
    said, tmp_path
):
    async with LocalServer(never_done()) as server:
        server.say_usage = lambda usage: (said, usage)
        env = environ(
            tmp_path / "home",
            server.base_url,
            BABYAGI_PRICE=PRICE,
        )

        ended = await babyagi("run", "Never be done", "--max-cost", "0.9", env=env)

    assert (ended.code, len(server.requests)) == (3, 1), ended.said
    assert "the limit of cost cannot be guaranteed" in ended.said
    status, report = await look("status", env=env), (await look("report", env=env))["markdown"]
    assert status["stop_reason"] == "limit:cost" and "What the execution agent found" in report
    assert (status["usage"]["unconfirmed_cost_usd"] > 0) == (said is None)


async def test_without_a_price_an_answer_that_does_not_say_its_cost_is_charged_with_all_that_was_reserved_and_the_run_goes_on(
    tmp_path,
):
    async with LocalServer(never_done()) as server:
        server.say_usage = lambda usage: (None, usage)
        env = environ(tmp_path / "home", server.base_url)

        ended = await babyagi("run", "Never be done", "--max-tasks", "3", env=env)

    assert ended.code == 3 and "cost unknown" in ended.said
    usage = (await look("status", env=env))["usage"]
    assert (
        usage["cost_usd"] is None
        and usage["unconfirmed_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    )


async def test_an_answer_that_cannot_be_read_is_charged_with_what_it_says_that_it_cost(tmp_path):
    async with LocalServer(never_done()) as server:
        server.fail_next("choices-empty")
        server.say_usage = lambda usage: ({"prompt_tokens": 500, "completion_tokens": 10**6}, usage)
        env = environ(
            tmp_path / "home",
            server.base_url,
            BABYAGI_PRICE=PRICE,
        )

        ended = await babyagi("run", "Never be done", "--max-cost", "0.9", env=env)

    assert (ended.code, len(server.requests)) == (3, 1), ended.said
    assert "the limit of cost cannot be guaranteed" in ended.said
    assert (await look("status", env=env))["usage"]["cost_usd"] > 60
