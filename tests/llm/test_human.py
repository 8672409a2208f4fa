import asyncio

from babyagi.llm.human import HumanModel
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.tasks import Role

PROMPT = Prompt(
    messages=(
        Message(speaker=Speaker.SYSTEM, text="Be brief."),
        Message(speaker=Speaker.USER, text="What now?"),
    )
)


async def test_the_prompt_is_shown_and_what_is_typed_is_the_answer():
    shown = []

    async def ask(text):
        shown.append(text)
        return "  rest\x07 \n"

    completion = await HumanModel(ask).complete(PROMPT, role=Role.EXECUTION)

    assert shown == ["Be brief.\n\nWhat now?"]
    assert completion.text == "rest\N{REPLACEMENT CHARACTER}" and completion.model == "human"
    assert completion.usage.cost_usd == 0.0 and completion.usage.calls == 1
    assert HumanModel(ask).reserve(PROMPT).tokens >= completion.usage.tokens


async def test_a_person_is_asked_one_question_at_a_time():
    n_open, most = 0, 0

    async def ask(text):
        nonlocal n_open, most
        n_open += 1
        most = max(most, n_open)
        await asyncio.sleep(0)
        n_open -= 1
        return "yes"

    model = HumanModel(ask)
    await asyncio.gather(*(model.complete(PROMPT, role=Role.EXECUTION) for _ in range(3)))

    assert most == 1
