"""Opens the backends that the settings name: the task store and the index."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from babyagi.errors import BabyagiError, NotFoundError, SettingsError
from babyagi.files.home import make_home
from babyagi.index.indexer import collection_of
from babyagi.index.port import VectorIndex
from babyagi.runtime.offload import ThreadOffload
from babyagi.settings.fields import Settings
from babyagi.tasks import Objective
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_for_looking, open_sqlite

N_SERVER_CONNECTIONS = 3


def is_on_a_server(settings: Settings) -> bool:
    """Return whether the task store is one that other machines can share."""
    return settings.task_store.reveal().startswith("postgres")


@asynccontextmanager
async def open_store(
    settings: Settings,
    *,
    tell: Callable[[str], None] = lambda _: None,
    only_looks: bool = False,
    creates: bool = True,
    migrates: bool = False,
) -> AsyncIterator[TaskStore]:
    """Yield the task store that the settings name, and close it afterwards.

    Args:
        tell: see `open_sqlite`.
        only_looks: open it read-only; nothing is created, upgraded or written.
        creates: create the home folder and the store if they are missing.
        migrates: upgrade a store on a server, too. One in a file is upgraded by being opened.

    Raises:
        NotFoundError: the store is missing and is not created, because what is to be changed cannot
            be in it.
    """
    if not (only_looks or creates or has_store(settings)):
        raise NotFoundError(
            f"there is no objective yet: {_path_of(settings)} does not exist",
            why="nothing was ever run here, or BABYAGI_HOME names another folder than you meant",
            fix='babyagi demo, or babyagi run "an objective" (submit, worker, serve and schedule '
            "add make a home, too); or correct BABYAGI_HOME",
            guide="settings",
        )
    if not only_looks:
        make_home(settings.home)
    address = settings.task_store.reveal()
    is_server = is_on_a_server(settings)
    n_threads = N_SERVER_CONNECTIONS if is_server else 1
    with closing(ThreadOffload(name="taskstore", n_threads=n_threads)) as offload:
        if is_server:
            store = await open_postgres(
                address, offload=offload, tell=tell, only_looks=only_looks, migrates=migrates
            )
        elif only_looks:
            store = await open_for_looking(_path_of(settings), clock=utc_now, offload=offload)
        else:
            path = _path_of(settings)
            store = await open_sqlite(path, clock=utc_now, offload=offload, tell=tell)
        try:
            yield store
        finally:
            await store.close()


def has_store(settings: Settings) -> bool:
    """Return whether the task store is there; one on a server is taken to be."""
    return is_on_a_server(settings) or _path_of(settings).exists()


def _path_of(settings: Settings) -> Path:
    address = settings.task_store.reveal()
    return Path(address.removeprefix("sqlite://")) if address else settings.home / "tasks.db"


async def migrate_store(settings: Settings) -> tuple[int, int]:
    """Upgrade the schema of the task store while no worker runs. Return the versions before and
    after.

    Raises:
        StoreUnusableError: a worker is running, or the database cannot be used (see
            `open_postgres`).
    """
    async with open_store(settings, creates=False, migrates=True) as store:
        return store.versions


def utc_now() -> datetime:
    return datetime.now(UTC)


# --------------------------------------------------------------------------------------------------
# How many files and connections this process may have open at once.
# --------------------------------------------------------------------------------------------------

# Measured with SQLite, Chroma and four tasks at once: 31. A worker that runs short loses answers
# that were paid for.
DESCRIPTORS_OF_WORKER = 40
DESCRIPTORS_PER_TASK = 2


def max_descriptors() -> float:
    """Return how many files and connections this process may have open at once."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if most == resource.RLIM_INFINITY else most


def require_descriptors(concurrency: int) -> None:
    """Raise `SettingsError` if this process may not open as many files and connections as it needs
    to carry out so many tasks at once."""
    most, least = max_descriptors(), DESCRIPTORS_OF_WORKER + DESCRIPTORS_PER_TASK * concurrency
    if most < least:
        raise SettingsError(
            f"this process may open only {most:g} files and connections at once, and needs {least}",
            fix=f"type ulimit -n {max(least, 1024)} before you start it",
            guide="recovery",
        )


# --------------------------------------------------------------------------------------------------
# The index that the settings name. Only this section knows all vendors.
# --------------------------------------------------------------------------------------------------

# Chroma imports the last two whatever it is used for.
CHROMA_MODULES = ("chromadb", "grpc", "opentelemetry.exporter.otlp.proto.grpc")
MODULES_AND_PACKAGE = {
    "chroma": (CHROMA_MODULES, "chromadb"),
    "weaviate": (("weaviate",), "weaviate-client>=4.23"),
    "pinecone": (("pinecone",), "pinecone>=9"),
}


def require_result_store(settings: Settings) -> None:
    """Check, without a request, that the chosen index can be opened.

    Raises:
        SettingsError: its library is not installed, or a variable that it needs is not set.
    """
    store = settings.effective_result_store
    modules, package = MODULES_AND_PACKAGE.get(store, ((), ""))
    module = "" if _is_usual(settings) else _find_missing(modules)
    if module:
        other = "builtin" if store == "chroma" else "chroma"
        raise SettingsError(
            f"the result store is {store.capitalize()}, and its library is not installed",
            why=f"the Python module {module} is missing",
            fix=f"pip install '{package}', or set BABYAGI_RESULT_STORE={other}",
            guide="results",
        )
    if store == "weaviate" and not settings.weaviate_url and not settings.weaviate_use_embedded:
        raise SettingsError(
            "the result store is Weaviate, and no server is set",
            why="neither WEAVIATE_URL nor WEAVIATE_USE_EMBEDDED is set",
            fix="set WEAVIATE_URL=http://HOST:8080, or BABYAGI_RESULT_STORE=chroma",
            guide="results",
        )
    if store == "pinecone" and not settings.pinecone_api_key:
        raise SettingsError(
            "the result store is Pinecone, and there is no key",
            why="PINECONE_API_KEY is not set",
            fix="set PINECONE_API_KEY, or BABYAGI_RESULT_STORE=chroma",
            guide="results",
        )


def _is_usual(settings: Settings) -> bool:
    """Return whether the index is the embedded Chroma, and nobody named it."""
    is_auto = settings.result_store == "auto" and not settings.chroma_url
    return is_auto and settings.effective_result_store == "chroma"


def _lack_of_chroma(settings: Settings) -> str:
    """Return in words why the index is the built-in one although nobody named it; "" if it is
    not."""
    missing = _find_missing(CHROMA_MODULES) if _is_usual(settings) else ""
    return missing and f"built-in, because Chroma cannot be imported: {missing} is missing"


def _find_missing(modules: Iterable[str]) -> str:
    """Return the first module that is not installed; "" if all are."""
    for module in modules:
        try:
            if find_spec(module) is None:
                return module
        except ImportError:  # what it is a part of is not installed
            return module
    return ""


async def ask_result_store(settings: Settings) -> None:
    """Check that the chosen index can be used now; a server is asked (`VectorIndex.ping`).

    Raises:
        IndexUnavailableError, StoreUnusableError: the index cannot be used now.
        SettingsError: see `require_result_store`.
    """
    async with AsyncExitStack() as stack:
        await open_index(settings, stack).ping()


def open_index(
    settings: Settings, stack: AsyncExitStack, *, tell: Callable[[str], None] = lambda _: None
) -> VectorIndex:
    """Return the index that the settings name; `stack` closes it. No vendor's package is imported,
    and no connection is made, before the index is first used.

    Args:
        tell: receives a line if nobody named an index, and it cannot be Chroma.

    Raises:
        SettingsError: see `require_result_store`.
    """
    require_result_store(settings)
    index = _make_index(settings, stack)
    if lack := _lack_of_chroma(settings):
        tell(f"the index of results is {lack}")
    stack.push_async_callback(index.close)
    return index


def _make_index(settings: Settings, stack: AsyncExitStack) -> VectorIndex:
    match "builtin" if _lack_of_chroma(settings) else settings.effective_result_store:
        case "builtin":
            from babyagi.index.builtin import BuiltinIndex

            return BuiltinIndex()
        case "weaviate":
            from babyagi.index.vendors.weaviate import WeaviateIndex

            return WeaviateIndex(
                settings.weaviate_url,
                api_key=settings.weaviate_api_key.reveal(),
                grpc_port=settings.weaviate_grpc_port,
                is_embedded=not settings.weaviate_url,
                proxies=settings.proxies,
            )
        case "pinecone":
            from babyagi.index.vendors.pinecone import PineconeIndex

            cloud, region = settings.pinecone_place
            key = settings.pinecone_api_key.reveal()
            return PineconeIndex(key, cloud=cloud, region=region, proxies=settings.proxies)
    if settings.chroma_url:
        from babyagi.index.vendors.chroma import ChromaServerIndex

        return ChromaServerIndex(settings.chroma_url, proxies=settings.proxies)
    from babyagi.index.vendors.chroma import ChromaIndex

    offload = ThreadOffload(name="chroma")
    stack.callback(offload.close)
    return ChromaIndex(settings.home / "chroma", offload=offload)


async def drop_collection(settings: Settings, objective: Objective) -> str:
    """Remove the objective's vectors from the index. Return '', or the reason if that failed."""
    try:
        async with AsyncExitStack() as stack:
            await open_index(settings, stack).drop(collection_of(objective))
    except BabyagiError as error:
        return error.what
    return ""


def describe_index(settings: Settings) -> str:
    """Return which index is in use, and where, in words for a person."""
    match settings.effective_result_store:
        case "builtin":
            return "built-in"
        case "weaviate":
            url = settings.weaviate_url
            return f"Weaviate at {url}" if url else "Weaviate, embedded"
        case "pinecone":
            cloud, region = settings.pinecone_place
            return f"Pinecone ({cloud}, {region})"
    if lack := _lack_of_chroma(settings):
        return lack
    return f"Chroma at {settings.chroma_url}" if settings.chroma_url else "Chroma, embedded"
