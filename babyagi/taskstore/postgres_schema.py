"""The schema on PostgreSQL: made in an empty database by whoever opens it first, brought to a newer
version only when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from babyagi.errors import StoreUnusableError
from babyagi.taskstore import pieces
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.postgres_connections import rolled_back_on_error

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The schema that a connection sees.

    Args:
        pieces: the named SQL. scripts: what makes the schema, one script per version. where: the
            URL, masked.
    """

    connection: psycopg.Connection[Any]
    pieces: Mapping[str, str]
    scripts: Sequence[str]
    where: str

    def require_current(self) -> None:
        """Make the schema of an empty database. Raises `StoreUnusableError` when there is one of
        another version, or none of ours."""
        self._require_utf8()
        version = self.version()
        if version == 0:
            version = self.migrate()[1]
        pieces.require_known(version, known=len(self.scripts), where=self.where)
        if version < len(self.scripts):
            raise StoreUnusableError(
                f"the task store {self.where} was written by an older babyagi",
                why=(
                    f"its schema has version {version}, this program needs version "
                    f"{len(self.scripts)}"
                ),
                fix="stop every worker, make a backup (pg_dump), then: babyagi migrate",
                guide="store",
            )

    def migrate(self) -> tuple[int, int]:
        """Bring the schema to this program's version, each version in one transaction; never under
        living workers.

        Returns:
            The version before and after.
        """
        before = after = self.version()
        pieces.require_known(before, known=len(self.scripts), where=self.where)
        while after < len(self.scripts):
            after = self._step_up()
        return before, after

    def version(self) -> int:
        """0 when there is none."""
        names = [row["name"] for row in self.connection.execute(self.pieces["tables"])]
        row = self._row("schema_version") if "meta" in names else None
        return pieces.parse_version(names, None if row is None else row["value"], where=self.where)

    def _step_up(self) -> int:
        """One version more, or in an empty database all of them at once, unless another process was
        faster; returns the version then."""
        with rolled_back_on_error(self.connection):
            self.connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            self._row("lock_schema")
            version = self.version()
            if version == 0:
                if self._row("has_schema") is None:
                    self.connection.execute(self.pieces["create_schema"])
                self._run(self.scripts)
            elif version < len(self.scripts):
                self._require_no_worker(version)
                self._run(self.scripts[version : version + 1])
            version = self.version()
            self.connection.execute("COMMIT")
        return version

    def _run(self, scripts: Sequence[str]) -> None:
        for script in scripts:
            self.connection.execute(script, prepare=False)  # several statements

    def _require_no_worker(self, version: int) -> None:
        tx = Transaction(self.connection, pieces=self.pieces, now_us=self._row("clock")["now_us"])
        if tx.has("has_living_worker"):
            raise pieces.held_up(version, self.scripts, where=self.where)

    def _require_utf8(self) -> None:
        encoding = self._row("encoding")["encoding"]
        if encoding != "UTF8":
            raise StoreUnusableError(
                f"the task store {self.where} cannot be used",
                why=f"its database has the encoding {encoding}",
                fix="create a database with ENCODING 'UTF8'",
                guide="store",
            )

    def _row(self, piece: str) -> Any:
        return self.connection.execute(self.pieces[piece]).fetchone()
