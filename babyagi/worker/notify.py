"""Notifications that a run waits or has ended: a command or an address that the person set receives
the event as JSON. Requests to an address are signed with a key from babyagi's home folder.

Failures are logged and never affect the run. The address may be in the local network, because the
person chose it; redirects to other addresses are not followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import os
import shlex
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from babyagi import events
from babyagi.errors import BabyagiError, NotFoundError, ToolError
from babyagi.inbox import asking_task, describe
from babyagi.net.addresses import Proxies
from babyagi.net.door import Door
from babyagi.redaction import redact
from babyagi.runtime.offload import wait_at_most
from babyagi.tasks import Event, Objective
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import clean, shorten

logger = logging.getLogger(__name__)

Send = Callable[[str], Awaitable[None]]

TIMEOUT_S = 10.0
POLL_S = 5.0
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
RETELL_S = 60.0
MAX_AGE = timedelta(days=1)
N_LOOKED_AT = 50  # how many of the newest objectives are searched for pending notifications
MAX_REST = 100  # pending events of one objective
MAX_NAME_CHARS = 200
MAX_SAID_CHARS = 4000
KEY_FILE = "notify_key"


def event_fields(event: Event) -> dict[str, Any]:
    """Return an event as the published JSON object, which notifications and `--json` contain."""
    return {
        "v": events.EVENT_VERSION,
        "id": event.id,
        "at": event.at.isoformat(),
        "objective_id": event.objective_id,
        "task_id": event.task_id,
        "kind": event.kind,
        "data": dict(event.data),
    }


class Notifier:
    """Sends notifications about objectives: `task.parked` as soon as a task waits for a person, and
    `objective.ended` when the objective has ended; about one objective (`watching`), or about all,
    whichever process works on them (`watching_all`).

    The last notified event is recorded in the task store, as an event. So notifications missed
    because of a kill or an outage are sent later, by any worker: each at least once, those of one
    objective in order. After a day they are dropped.

    Args:
        now: returns the time of the task store.
        with_text: adds a text that tells a person what happened, with `secrets` hidden.
    """

    def __init__(
        self,
        store: TaskStore,
        send: Send,
        *,
        now: Callable[[], datetime],
        with_text: bool = False,
        secrets: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._send = send
        self._now = now
        self._with_text = with_text
        self._secrets = tuple(secrets)
        self._sending = asyncio.Lock()
        self._followed: set[int] = set()
        self._has_begun = asyncio.Event()

    async def begin(self, objective_id: int) -> None:
        """Send notifications about what happens to the objective from now on, unless some were sent
        before."""
        if await self._told_up_to(objective_id) is None:
            await self._note(objective_id, await self._store.last_event_id(objective_id))
        self._has_begun.set()

    @asynccontextmanager
    async def watching(self, objective_id: int) -> AsyncIterator[None]:
        """Send notifications about the objective while the context lasts. Its exit sends what is
        pending, for at most twice `TIMEOUT_S`."""
        await self.begin(objective_id)
        telling = asyncio.ensure_future(self._tell_whole(objective_id))
        try:
            yield
        finally:
            # a notification in progress is completed before the run ends
            async with self._sending:
                telling.cancel()
            with suppress(asyncio.CancelledError, NotFoundError):
                await telling
            try:
                async with asyncio.timeout(2 * TIMEOUT_S):
                    await self._send_due(await self._store.objective(objective_id))
            except (TimeoutError, BabyagiError) as error:
                what = "notifications of objective %d are sent later: %s"
                logger.warning(what, objective_id, error or "they took too long")

    @asynccontextmanager
    async def watching_all(self) -> AsyncIterator[None]:
        """Send notifications about all objectives while the context lasts. Once a minute, and after
        `begin`, look for new objectives, and for those that are active again."""
        following = asyncio.ensure_future(self._follow_all())
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def _follow_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                self._has_begun.clear()
                try:
                    for objective_id in await self._find_begun() - self._followed:
                        self._followed.add(objective_id)
                        group.create_task(self._follow(objective_id))
                except BabyagiError as error:
                    logger.warning("pending notifications could not be read: %s", error)
                await wait_at_most(self._has_begun, RETELL_S)

    async def _follow(self, objective_id: int) -> None:
        try:
            await self._tell_whole(objective_id)
        except NotFoundError:
            logger.info("objective %d was deleted", objective_id)
        finally:
            self._followed.discard(objective_id)

    async def _tell_whole(self, objective_id: int) -> None:
        """Send notifications about an objective, whichever process works on it, each again until it
        succeeds. Return when the objective has ended, its report is written, and the notification
        of its end has been sent.

        Raises:
            NotFoundError: there is no such objective.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                last_id = await self._store.last_event_id(objective_id)
                objective = await self._store.objective(objective_id)
                if await self._send_due(objective):
                    if _has_ended(objective):
                        return
                    await self._store.wait_for_events(
                        objective_id, after_id=last_id, timeout_s=POLL_S
                    )
                    pause_s = FIRST_PAUSE_S
                    continue
            except NotFoundError:
                raise
            except BabyagiError as error:
                what = "the events could not be read, so notifications are late: %s"
                logger.warning(what, error.what)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    async def _find_begun(self) -> set[int]:
        """Return the ids of the open and the newest objectives about which notifications are
        sent."""
        newest = await self._store.objectives(limit=N_LOOKED_AT)
        found = {one.id for one in [*await self._store.objectives(are_open=True), *newest]}
        return {id_ for id_ in found if await self._told_up_to(id_) is not None}

    async def _told_up_to(self, objective_id: int) -> int | None:
        found = await self._store.events(
            objective_id, kinds=(events.PERSON_TOLD,), from_end=True, limit=1
        )
        return int(found[-1].data["up_to"]) if found else None

    async def _note(self, objective_id: int, event_id: int) -> None:
        await self._store.append_event(
            objective_id, kind=events.PERSON_TOLD, data={"up_to": event_id}
        )

    async def _send_due(self, objective: Objective) -> bool:
        """Send the pending notifications in order, up to the first that fails: questions, and the
        end once the report is written, unless the objective has been continued since. Return
        whether none is left."""
        told = await self._told_up_to(objective.id) or 0
        kinds = (events.TASK_PARKED, events.OBJECTIVE_ENDED)
        rest = await self._store.events(
            objective.id, after_id=told, kinds=kinds, from_end=True, limit=MAX_REST
        )
        ends = [event for event in rest if event.kind == events.OBJECTIVE_ENDED]
        due_ends = ends[-1:] if _has_ended(objective) else []
        for event in rest:
            if (event not in ends or event in due_ends) and not await self._try_to_send(event):
                return False
        return True

    async def _try_to_send(self, event: Event) -> bool:
        """Return whether no further try is needed: the notification was sent, or is too old."""
        async with self._sending:
            if (await self._told_up_to(event.objective_id) or 0) >= event.id:
                return True  # another worker sent it first
            if self._now() - event.at > MAX_AGE:
                what = "the notification about %s failed for a day and is dropped"
                logger.warning(what, event.kind)
            else:
                try:
                    text = {"text": await self._say(event)} if self._with_text else {}
                    async with asyncio.timeout(TIMEOUT_S):
                        await self._send(json.dumps({**event_fields(event), **text}))
                except Exception as error:  # a person's command or address must not affect the run
                    what = "the notification of %s failed: %s"
                    logger.warning(what, event.kind, _say_fault(error))
                    return False
            await self._note(event.objective_id, event.id)
        return True

    async def _say(self, event: Event) -> str:
        """Return what happened and what the person can type, as text."""
        objective = await self._store.objective(event.objective_id)
        name = f"objective {objective.id} ({shorten(objective.spec.text, MAX_NAME_CHARS)})"
        if event.kind == events.OBJECTIVE_ENDED:
            said, command = f"{name} has ended: {objective.stop_reason}", "report"
            text = await self._store.report(objective.id) or ""
        else:
            said = f"task {event.task_id} of {name} waits for you"
            command = f"inbox {event.task_id}"
            steps = await self._store.inbox(objective.id)
            text = "\n".join(describe(one) for one in steps if asking_task(one) == event.task_id)
        said += f"\nbabyagi {command} --objective {objective.id}\n\n{text}"
        shown = clean(redact(said, secrets=self._secrets))
        return shown if len(shown) <= MAX_SAID_CHARS else f"{shown[: MAX_SAID_CHARS - 1]}…"


def _has_ended(objective: Objective) -> bool:
    return objective.stop_reason is not None and objective.has_report


def _say_fault(error: Exception) -> str:
    if isinstance(error, UndeliveredError):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"it took longer than {TIMEOUT_S:g} s"
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


class UndeliveredError(Exception):
    """A notification was not delivered. The message never quotes the error of a library, because
    that may contain the address."""


def sign(body: bytes, *, key: str, at: datetime) -> dict[str, str]:
    """Return the headers of a request by which its receiver knows who sent it and when.
    `X-Babyagi-Signature` is `v1=` and the HMAC-SHA256, in hex, of the timestamp, a dot and the
    body."""
    at_s = str(int(at.timestamp()))
    mark = hmac.new(key.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return {"x-babyagi-timestamp": at_s, "x-babyagi-signature": f"v1={mark}"}


def is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def make_sender(
    target: str,
    *,
    environ: Mapping[str, str],
    key: str,
    now: Callable[[], datetime],
    proxies: Proxies | None = None,
) -> Send:
    """Return a function that sends the JSON of an event to `target`: an http or https address,
    wherever it is, or a command, which is run without a shell.

    Args:
        environ: the whole environment of the command.
        key: signs the requests to an address, with the time `now` (see `sign`).
    """
    if not is_address(target):
        return lambda text: _run_command(shlex.split(target), text, environ)
    door = Door(allow=("*",), proxies=proxies, timeout_s=TIMEOUT_S)

    async def send(text: str) -> None:
        body = text.encode()
        headers = {"content-type": "application/json", **sign(body, key=key, at=now())}
        try:
            url = target.replace(" ", "%20")
            async with door.answering(url, headers=headers, body=body) as answer:
                status = answer.status
        except ToolError:
            raise UndeliveredError("the address cannot be reached") from None
        if status >= 300:
            raise UndeliveredError(f"the address answered with HTTP status {status}")

    return send


async def _run_command(command: list[str], text: str, environ: Mapping[str, str]) -> None:
    """Run the command with the text on its standard input. The command and its child processes are
    killed after the timeout."""
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=silent,
        stderr=silent,
        start_new_session=True,
        env=environ,
    )
    try:
        await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise UndeliveredError(f"the command ended with code {process.returncode}")
