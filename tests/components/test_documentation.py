"""The example that looks everywhere: a kill between any two of its calls asks no service twice.
The same in every protocol: `tests/react/test_walkthroughs.py`."""

from collections import Counter
from pathlib import Path

import pytest

from babyagi.agent import Agent
from babyagi.llm.prompt import Message, Speaker
from babyagi.react.executor import Executor
from babyagi.react.steps import Stopped
from tests.documentation import (
    CONCLUSION,
    IN_A_FILE,
    QUESTION,
    answer_empty,
    link,
    service_of,
    speaking,
)
from tests.react.test_walkthroughs import Killed, MortalCalls
from tests.test_journal import open_desk
from tests.web_server import WebServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "documentation.yaml"
ASKED = Counter({"deepset": 2, "serper": 1, "github": 1})
N_CALLS = 5 + 4  # of the model, of its tools
MESSAGES = (Message(speaker=Speaker.USER, text=QUESTION, origins=("person",)),)


@pytest.mark.thorough
async def test_a_kill_between_any_two_calls_asks_no_service_twice(monkeypatch):
    say = speaking("text", IN_A_FILE, "question", rephrases=True)

    def answer(prompt, role):
        said = say(prompt)
        return said.tool_calls or said.text

    for name in ("DEEPSET_CLOUD_API_KEY", "SERPER_API_KEY"):
        monkeypatch.setenv(name, "key")
    async with WebServer(answer_empty) as services:
        for name in ("DOCUMENTS", "SEARCH", "ISSUESEARCH"):
            monkeypatch.setenv(f"{name}_PARAMS_BASE_URL", services.base_url)
        agent = Agent.from_yaml(EXAMPLE, model="rehearsal", protocol="text")

        def open_executor(desk, dies_before):
            calls = MortalCalls(desk.open_journal(), dies_before)
            return Executor(
                tools=agent.tools, calls=calls, protocol=agent.protocol, bounds=agent.bounds
            )

        for dies_before in range(1, N_CALLS + 1):
            services.asked.clear()
            desk = await open_desk(answer)
            with pytest.raises(Killed):
                await open_executor(desk, dies_before).run(MESSAGES)

            run = await open_executor(desk, 0).run(MESSAGES)

            assert run.stopped is Stopped.FINISH
            assert run.output == f"{CONCLUSION}\nAsk for it here: {link('question')}"
            assert Counter(map(service_of, services.asked)) == ASKED
