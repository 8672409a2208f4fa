import asyncio
import gc
import resource

import pytest

from babyagi.app.application import open_app
from babyagi.app.backends import open_store
from babyagi.app.toolbox import open_pipeline
from babyagi.errors import CredentialsError, SettingsError, StoreUnusableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.indexer import collection_of
from babyagi.settings.load import load_settings
from babyagi.tasks import ANSWER_TASK, Level, ObjectiveStatus, Role, StopReason
from babyagi.taskstore.lifecycle import EARLIER_DEFAULTS
from babyagi.verbs.verb_table import VERBS, Call, Desk, carry_out
from babyagi.worker import process
from support.workers import join


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.md").write_text(
            f"The limit of page {name} is held before each call is made.\n", encoding="utf-8"
        )
    return folder


@pytest.fixture
def settings(tmp_path):
    def load(**flags):
        given = {
            "objective": "What is said about the limit?",
            "llm_model": "rehearsal",
            "result_store": "builtin",
            "home": tmp_path / "home",
        }
        environ = {name: str(flags.pop(name)) for name in list(flags) if name.isupper()}
        environ = {
            "BABYAGI_HOME": str(given.pop("home")),
            "BABYAGI_RESULT_STORE": str(given.pop("result_store")),
            **environ,
        }
        return load_settings(flags={**given, **flags}, environ=environ, cwd=tmp_path).settings

    return load


async def start_and_run(settings):
    async with open_app(settings) as app:
        objective, is_new = await app.start_objective()
        return (await app.run(objective)).objective, is_new


async def test_a_run_on_a_folder_ends_with_a_report_that_quotes_it(settings, documents):
    objective, _ = await start_and_run(settings(files=documents))

    async with open_store(settings()) as store:
        assert objective.stop_reason is StopReason.FINISHED
        assert "(one.md:1)" in (await store.report(objective.id) or "")


async def test_a_worker_gives_back_the_vectors_of_an_objective_that_has_ended(settings):
    held, others = [], find_indexes()

    async with open_app(settings()) as app:

        async def see(objective_id, work):
            indexes = [one for one in find_indexes() if one not in others]
            held.append([len(await one.ids(collection_of(first))) for one in indexes])
            ended = await work
            held.append([len(await one.ids(collection_of(first))) for one in indexes])
            if objective_id == first.id:
                await app.start_objective(always_new=True)
            else:
                app.stop()
            return ended

        first, _ = await app.start_objective()
        await app.serve_all(see)

    assert held[1] > [0] and held == [[0], held[1], [0], [0]]


async def test_what_this_process_submits_itself_is_begun_without_waiting(settings, monkeypatch):
    monkeypatch.setattr(process, "CHANGE_WAIT_S", 3600.0)
    (submit,) = (verb for verb in VERBS if verb.name == "submit")
    served = []

    async with open_app(settings()) as app, asyncio.timeout(120):
        is_idle = asyncio.Event()

        async def see(objective_id, work):
            served.append(objective_id)
            ended = await work
            if len(served) > 1:
                app.stop()
            # after the last steps of this objective
            asyncio.get_running_loop().call_later(0.1, is_idle.set)
            return ended

        async def submit_another():
            await is_idle.wait()
            call = Call(
                desk=Desk(app=app),
                path={},
                given=submit.given(objective="Another one"),
                level=Level.ADMIN,
            )
            await carry_out(submit, call)

        await app.start_objective()
        await asyncio.gather(app.serve_all(see), submit_another())

    assert len(served) == 2


def find_indexes():
    return [one for one in gc.get_objects() if isinstance(one, BuiltinIndex)]


async def test_where_too_few_files_may_be_open_nothing_begins_and_a_line_says_what_to_type(
    settings,
):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, before[1]))
    try:
        with pytest.raises(SettingsError, match=r"only 16 files .* needs 48") as caught:
            await start_and_run(settings())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert "ulimit -n 1024" in caught.value.fix and not settings().home.exists()


async def test_starting_the_same_objective_again_finds_it_and_makes_no_call(settings):
    first, is_new = await start_and_run(settings())
    again, is_new_again = await start_and_run(settings())

    assert (is_new, is_new_again) == (True, False)
    assert (again.id, again.usage) == (first.id, first.usage)


async def test_another_first_task_makes_it_another_objective(settings):
    first, _ = await start_and_run(settings())
    other, is_new = await start_and_run(settings(initial_task="Begin elsewhere"))

    assert is_new
    assert other.id != first.id


@pytest.mark.parametrize("earlier", EARLIER_DEFAULTS)
async def test_an_objective_of_a_version_with_another_default_first_task_goes_on(settings, earlier):
    assert settings().initial_task == ANSWER_TASK

    first, _ = await start_and_run(settings(initial_task=earlier))
    again, is_new = await start_and_run(settings())

    assert not is_new
    assert again.id == first.id


async def test_what_belongs_to_the_objective_is_frozen_and_what_belongs_to_the_worker_is_not_stored(
    settings, documents, tmp_path
):
    key = "sk-secret-of-this-worker"
    objective, _ = await start_and_run(settings(files=documents, OPENAI_API_KEY=key))

    assert objective.spec.model_by_role[Role.EXECUTION] == "rehearsal"
    assert [tool.name for tool in objective.spec.tools] == [
        "list_files",
        "read_file",
        "search_files",
    ]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("tasks.db*"))
    assert key.encode() not in stored
    assert str(documents).encode() not in stored


async def test_going_on_finds_the_folder_again_and_another_home_is_asked_for_it(
    settings, documents, tmp_path
):
    async with open_app(settings(files=documents)) as app:
        objective, _ = await app.start_objective()

    async with open_app(settings()) as app:
        assert (await app.run(objective)).objective.stop_reason is StopReason.FINISHED

    (tmp_path / "home" / "folders" / objective.uid).unlink()
    async with open_app(settings(initial_task="Another", files=documents)) as app:
        other, _ = await app.start_objective()
    (tmp_path / "home" / "folders" / other.uid).unlink()
    async with open_app(settings()) as app:
        with pytest.raises(SettingsError, match="needs a folder"):
            await app.run(other)


async def test_a_folder_that_is_gone_is_a_clear_error(settings, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    async with open_app(settings(files=folder)) as app:
        objective, _ = await app.start_objective()
        folder.rmdir()
        with pytest.raises(SettingsError) as caught:
            await app.run(objective)
    assert "gone is not a folder" in caught.value.why


async def test_an_unknown_price_refuses_a_money_limit_that_a_person_set(settings):
    async with open_app(
        settings(llm_model="home-made", OPENAI_BASE_URL="http://127.0.0.1:9/v1", max_cost_usd="2")
    ) as app:
        with pytest.raises(SettingsError, match=r"\$2 cannot be guaranteed"):
            await app.start_objective()


async def test_an_unknown_price_switches_the_default_money_limit_off_and_says_so(settings):
    async with open_app(
        settings(llm_model="home-made", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    ) as app:
        objective, _ = await app.start_objective()

        assert objective.spec.limits.max_cost_usd == 0
        assert objective.spec.limits.max_tokens == 2_000_000
        assert "home-made" in app.notices[0]


async def test_the_price_settings_do_not_apply_to_vectors(settings):
    own = settings(
        llm_model="home-made",
        OPENAI_API_KEY="sk-x",
        price="5/15",
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",
    )
    remote = settings(
        llm_model="home-made",
        OPENAI_API_KEY="sk-x",
        price="5/15",
        BABYAGI_EMBEDDING_MODEL="embedder",
    )
    async with open_app(own) as app:
        assert (
            app.models.open_embedder("text-embedding-3-small").reserve(["x" * 3000]).cost_usd == 0
        )
    async with open_app(remote) as app:
        await app.start_objective()
        assert "no price is known for embedder" in app.notices[0]


async def test_the_embedding_model_of_an_objective_has_its_own_price_whatever_the_settings_say_later(
    settings,
):
    async with open_app(settings(OPENAI_API_KEY="sk-x")) as app:
        assert app.models.open_embedder("text-embedding-3-large").reserve(["x" * 3000]).cost_usd > 0


async def test_a_worker_with_another_model_is_told_which_is_asked_and_which_is_its_own(settings):
    told: list[str] = []
    async with open_app(settings()) as app:
        objective, _ = await app.start_objective()
    async with open_app(settings(llm_model="other"), tell=told.append) as app:
        await app.run(objective)

    (said,) = told
    assert f"objective {objective.id} was started with rehearsal; " in said and said.endswith(
        ": other"
    )


async def test_an_objective_keeps_its_embedding_model_whatever_the_settings_say_later(
    settings, documents
):
    async with open_app(settings(files=documents)) as app:
        objective, _ = await app.start_objective()
    async with open_app(
        settings(
            files=documents,
            BABYAGI_EMBEDDING_MODEL="embedder",
            OPENAI_BASE_URL="http://127.0.0.1:9/v1",
        )
    ) as app:
        ended = (await app.run(objective)).objective

    assert (ended.has_report, ended.spec.embedding_space) == (True, "hash:v1:768")


async def test_the_same_embedding_model_at_another_address_is_refused(settings):
    async with open_app(
        settings(
            BABYAGI_EMBEDDING_MODEL="embedder", BABYAGI_EMBEDDING_BASE_URL="http://127.0.0.1:9/v1"
        )
    ) as app:
        objective, _ = await app.start_objective()
    async with open_app(
        settings(
            BABYAGI_EMBEDDING_MODEL="embedder", BABYAGI_EMBEDDING_BASE_URL="http://127.0.0.1:8/v1"
        )
    ) as app:
        with pytest.raises(SettingsError, match="embedded as openai:"):
            await app.run(objective)


async def test_the_human_model_needs_somebody_to_ask(settings):
    async with open_app(settings(llm_model="human")) as app:
        objective, _ = await app.start_objective()
        with pytest.raises(CredentialsError, match="a person at a terminal"):
            await app.run(objective)


async def test_the_human_model_asks_and_takes_what_is_typed(settings):
    asked = []

    async def ask(prompt):
        asked.append(prompt.split("\n")[0].removeprefix("Role: "))
        typed = {
            "execution agent": "forty-two",
            "creation agent": "",
            "check agent": "yes",
        }
        return typed.get(asked[-1], "It is forty-two.")

    async with open_app(settings(llm_model="human"), ask_human=ask) as app:
        objective, _ = await app.start_objective()
        ended = (await app.run(objective)).objective
        (result,) = await app.store.results(objective.id)

    assert (ended.stop_reason, result.text) == (StopReason.FINISHED, "forty-two")
    assert asked == ["execution agent", "creation agent", "check agent"]  # the result is the report


async def test_two_workers_of_one_home_have_two_names(settings):
    async with (
        open_app(settings(worker_name="me")) as one,
        open_app(settings(worker_name="me")) as two,
    ):
        assert (one._identity.name, two._identity.name) == ("me", "me-2")


async def test_the_tasks_of_a_killed_worker_with_our_name_are_queued_again_at_once(settings):
    async with open_app(settings(worker_name="me")) as app:
        objective, _ = await app.start_objective()
        await join(app.store, app._identity, objective.id, lease_s=3600)
        assert await app.store.claim_task(objective.id, app._identity.id) is not None

    async with open_app(settings(worker_name="me")) as app:
        assert (await app.store.workers()) == []
        assert (await app.run(objective)).objective.status is ObjectiveStatus.ENDED


async def test_a_home_that_cannot_be_used_is_a_clear_error(settings, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(StoreUnusableError, match="cannot be used"):
        async with open_store(settings(BABYAGI_HOME=tmp_path / "file" / "home")):
            pass


def test_the_pipeline_that_is_named_is_asked_in_the_form_of_its_service(settings):
    at_haystack = open_pipeline(settings(BABYAGI_PIPELINE="http://127.0.0.1:8000/"))
    at_deepset = open_pipeline(settings(BABYAGI_PIPELINE="my/docs", DEEPSET_CLOUD_API_KEY="k"))

    assert open_pipeline(settings()) is None
    assert at_haystack is not None and at_haystack.url == "http://127.0.0.1:8000/query"
    assert at_deepset is not None and at_deepset.url == (
        "https://api.cloud.deepset.ai/api/v1/workspaces/my/pipelines/docs/search"
    )
    with pytest.raises(SettingsError, match="deepset Cloud needs its key"):
        open_pipeline(settings(BABYAGI_PIPELINE="my/docs"))
    with pytest.raises(SettingsError, match="needs BABYAGI_PIPELINE"):
        settings(BABYAGI_TOOLS="ask_pipeline")
    with pytest.raises(SettingsError, match="deepset Cloud, which needs DEEPSET_CLOUD_API_KEY"):
        settings(BABYAGI_TOOLS="ask_pipeline", BABYAGI_PIPELINE="my/docs")
    for bad in ("docs", "a/b/c", "ftp://a"):
        with pytest.raises(SettingsError, match="BABYAGI_PIPELINE must be"):
            settings(BABYAGI_PIPELINE=bad)
