"""LangChain's AgentExecutor on the replies of `benchmarks.steps`; run by its own Python, prints the
seconds that each step took.

The first argument is the number of steps. Needs langchain-classic, or a langchain that still has
`langchain.agents.AgentExecutor`.
"""

from __future__ import annotations

import sys
import time

STEPS = int(sys.argv[1])
TEMPLATE = """Answer with these tools:
{tools}
Use this form:
Thought: why
Action: one of [{tool_names}]
Action Input: what
Observation: what came of it
Final Answer: the answer
Question: {input}
Thought:{agent_scratchpad}"""


def main() -> None:
    try:
        from langchain_classic.agents import AgentExecutor, create_react_agent  # type: ignore[import-not-found]
    except ImportError:
        from langchain.agents import AgentExecutor, create_react_agent  # type: ignore[import-not-found]
    from langchain_core.language_models.fake import FakeListLLM  # type: ignore[import-not-found]
    from langchain_core.prompts import PromptTemplate  # type: ignore[import-not-found]
    from langchain_core.tools import Tool  # type: ignore[import-not-found]

    replies = [f"I look.\nAction: lookup\nAction Input: {n}" for n in range(STEPS)] + [
        "I know.\nFinal Answer: done"
    ]
    tool = Tool(name="lookup", func=lambda given: f"value {given}", description="Look a number up.")
    agent = create_react_agent(
        FakeListLLM(responses=replies), [tool], PromptTemplate.from_template(TEMPLATE)
    )
    executor = AgentExecutor(agent=agent, tools=[tool], max_iterations=STEPS + 1)
    began = time.perf_counter()
    answer = executor.invoke({"input": "What?"})
    took_s = time.perf_counter() - began
    assert answer["output"] == "done", answer
    print(took_s / (STEPS + 1))


main()
