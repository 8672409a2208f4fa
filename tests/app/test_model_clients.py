import pytest

from babyagi.app.model_clients import Models, missing_key
from babyagi.errors import OverdueError
from babyagi.files.home import remember_abilities
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.settings.fields import Settings
from babyagi.settings.values import Secret
from babyagi.tasks import Role
from support.local_server import LocalServer, echo_answer
from tests.patience import run_skipping

ASK = Prompt(messages=(Message(speaker=Speaker.USER, text="Hello?"),), max_output_tokens=20)


@pytest.mark.parametrize(
    ("models", "has_key", "base_url", "is_missing"),
    [
        (["gpt-6-luna"], False, "", True),
        (["gpt-6-luna"], True, "", False),
        (["gpt-6-luna"], False, "http://127.0.0.1:1/v1", False),
        (["human", "rehearsal"], False, "", False),
        (["rehearsal", "gpt-6-luna"], False, "", True),
    ],
)
def test_a_key_is_missing_where_a_model_of_an_endpoint_is_asked_without_one(
    models, has_key, base_url, is_missing
):
    settings = Settings(openai_api_key=Secret("k" * has_key), openai_base_url=base_url)

    error = missing_key(settings, models)

    assert (error is not None) is is_missing
    assert error is None or "gpt-6-luna" in error.what


def deadline_of(model):
    return model.deadline.now_s


def test_a_home_remembers_what_an_address_needs_and_tells_a_person_when_that_changes(tmp_path):
    told: list[str] = []
    deadlines: list[float] = []

    async def ask_anew(settings):
        models = Models(settings, given={}, ask_human=None, tell=told.append)
        async with models.open_role(Role.EXECUTION) as model:
            deadlines.append(deadline_of(model))
            await model.complete(ASK, role=Role.EXECUTION)

    async def live():
        async with LocalServer(echo_answer, latency_s=45.0) as server:
            settings = Settings(
                home=tmp_path,
                openai_base_url=server.base_url,
                model_timeout_s=10.0,
                protocol="untested",
            )
            with pytest.raises(OverdueError):
                await ask_anew(settings)
            await ask_anew(settings)
            return server.base_url

    address = run_skipping(live())

    assert deadlines == [10.0, 80.0]
    assert told == [f"{address}: a call may be silent for 1 min 20 s from now on"]


@pytest.mark.parametrize("kept", ["1e400 s", "80", "80 2001-02-03", "80 someday"])
def test_a_deadline_that_is_old_or_cannot_be_read_is_that_of_the_settings(kept, tmp_path):
    settings = Settings(home=tmp_path, openai_base_url="http://127.0.0.1:1/v1")
    remember_abilities(tmp_path, settings.openai_base_url, kept)

    async def live():
        models = Models(settings, given={}, ask_human=None, tell=print)
        async with models.open_role(Role.EXECUTION) as model:
            return deadline_of(model)

    assert run_skipping(live()) == settings.model_timeout_s
