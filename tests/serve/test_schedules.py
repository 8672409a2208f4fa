"""Schedules through the API and on the board."""


async def test_a_schedule_is_added_shown_paused_resumed_and_removed(served):
    body = {"objective": "Read the news", "every": "2h", "daily_limit_usd": 2, "max_cost_usd": 1}

    added = await served.ask("POST", "/api/v1/schedules", body)
    shown = await served.ask("GET", "/api/v1/schedules/1")
    paused = await served.ask("POST", "/api/v1/schedules/1/pause", {})
    resumed = await served.ask("POST", "/api/v1/schedules/1/resume", {})
    listed = await served.ask("GET", "/api/v1/schedules")
    removed = await served.ask("POST", "/api/v1/schedules/1/remove", {})
    left = await served.ask("GET", "/api/v1/schedules")
    whole = await served.ask("GET", "/api/v1/schedules?with_removed=true")

    assert added.status == 201
    assert added.json()["schedule"]["when"] == "every 7200 s"
    assert shown.json()["ticks"] == []
    assert [one.json()["schedule"]["status"] for one in (paused, resumed, removed)] == [
        "paused",
        "active",
        "removed",
    ]
    assert [one["id"] for one in listed.json()] == [1]
    assert left.json() == []
    assert [one["status"] for one in whole.json()] == ["removed"]


async def test_what_is_no_schedule_is_refused_with_what_to_type(served):
    never = await served.ask("POST", "/api/v1/schedules", {"objective": "x"})
    both = await served.ask(
        "POST", "/api/v1/schedules", {"objective": "x", "every": "1d", "cron": "0 9 * * *"}
    )
    unknown = await served.ask("GET", "/api/v1/schedules/9")

    assert [never.status, both.status, unknown.status] == [422, 422, 404]
    assert "schedule add" in never.json()["try"]


async def test_the_store_is_measured_for_a_collector(served):
    reply = await served.ask("GET", "/api/v1/metrics")

    assert reply.status == 200
    assert "# TYPE babyagi_" in reply.text
