"""Commits rows that Spark writes to a Delta table, in a transaction of Delta's that is begun here.

Two things are told to it that Delta's own writer cannot be told. Its idempotent writes (txnAppId,
txnVersion) look their id up at each write by a Spark job over the table's whole log, a third of
what a small micro-batch costs: who knows that a commit is new says so. And the fence counts as
read: where a newer writer has raised it since the transaction began, Delta refuses the commit.

On a file system of the machine deltalake makes the commit, where it can. Spark's Delta looks there
whether the commit's file is there and then renames its own to that name: a commit that another
process made between the two would be lost. deltalake links it, which fails where there is one.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession

from replication import places
from replication.spark.delta_schemas import MARK
from replication.spark.fence import Fence
from replication.spark.log_files import newest_version, opened
from replication.spark.small_commit import properties


class CameSecondError(Exception):
    """Another commit has the version that this one was to have."""


@dataclass(frozen=True)
class SparkCommit:
    """Rows for a table, and the transaction (appId, version) that says that they are there.

    replaced: SQL, the rows that give way, which all new rows must be of; "true": all rows; None:
    the new ones are appended.
    """

    rows: DataFrame
    transaction: tuple[str, int] | None
    replaced: str | None = None

    def save(self, path: str, fence: Fence | None = None) -> None:
        """Commits them. Raises CameSecondError where another commit came first, TakenOverError."""
        table = places.place(path)
        begun = SparkTransaction(self.rows.sparkSession, path)
        if fence is not None:
            begun.reads(fence.app)
            fence.check(table, begun.version, lambda: begun.transaction_version(fence.app))
        written = begun.write(self.rows, self.replaced)
        found = opened(table, begun.version)
        actions = None if found is None else _for_deltalake(written)
        if found is None or actions is None:
            begun.commit(written, self.transaction, self.replaced, fence)
            return
        replaced = {"mode": "Overwrite", "predicate": self.replaced}
        told = {} if self.replaced is None else {"operationParameters": replaced}
        try:
            found.create_write_transaction(
                actions, "append", found.schema(),
                commit_properties=properties(self.transaction, fence, **told),
            )  # fmt: skip
        except CommitFailedError as error:
            if newest_version(table) > begun.version:
                raise CameSecondError(
                    f"another job has made version {begun.version + 1} of {table} meanwhile"
                ) from error
            raise


def _for_deltalake(written: Any) -> list[AddAction | RemoveAction] | None:
    """What Spark has written, for a commit by deltalake; None where that knows no such action."""
    found: list[AddAction | RemoveAction] = []
    for place in range(written.size()):
        [(name, told)] = json.loads(written.apply(place).json()).items()
        if name == "add":
            found.append(AddAction(
                told["path"], told["size"], {}, told["modificationTime"], told["dataChange"],
                told.get("stats") or "{}",
            ))  # fmt: skip
        elif name == "remove":
            found.append(RemoveAction(
                told["path"], told["dataChange"], told["deletionTimestamp"], told["size"], {}
            ))  # fmt: skip
        else:
            return None
    return found


class SparkTransaction:
    """A transaction of Delta's in Spark (OptimisticTransaction): the version that it begins at
    stays the same, and its commit is refused where what it has read was changed since."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._jvm: Any = jvm
        self._delta = jvm.org.apache.spark.sql.delta
        self._log = self._delta.DeltaLog.forTable(spark._jsparkSession, path)
        self._begun = self._log.startTransaction(self._option(None), self._option(None))

    @property
    def version(self) -> int:
        """The table's version that it begins at."""
        return int(self._begun.readVersion())

    def reads(self, app: str) -> None:
        """Notes that the commit rests on which version an application id has now."""
        getattr(self._begun.readTxn(), "$plus$eq")(app)

    def transaction_version(self, app: str) -> int | None:
        """The version that an application id has, None where it has none: a Spark job."""
        found = int(self._begun.txnVersion(app))
        return None if found < 0 else found

    def write(self, rows: DataFrame, replaced: str | None) -> Any:
        """Writes the files of rows; what a commit has of them. replaced: as SparkCommit has it."""
        if replaced is None:
            return self._begun.writeFiles(rows._jdf)
        options = self._delta.DeltaOptions(
            self._map({} if replaced == "true" else {"replaceWhere": replaced}),
            self._spark._jsparkSession.sessionState().conf(),
        )
        nothing = self._option(None)
        written = self._delta.commands.WriteIntoDelta(
            self._log, self._mode("Overwrite"), options, self._list([]), self._map({}), rows._jdf,
            nothing, nothing, False,
        )  # fmt: skip
        # What the rows are made of, where it is the same table, is read as the transaction has it.
        active = getattr(getattr(self._delta, "OptimisticTransaction$"), "MODULE$")
        active.setActive(self._begun)
        try:
            return written.write(self._begun, self._spark._jsparkSession, nothing, False)
        finally:
            active.clearActive()

    def commit(
        self,
        actions: Any,
        transaction: tuple[str, int] | None,
        replaced: str | None,
        fence: Fence | None,
    ) -> int:
        """Commits what was written (None: nothing); the version that this makes."""
        actions = self._list([]) if actions is None else actions
        if transaction is not None:
            now = self._option(int(time.time() * 1000))
            named = self._delta.actions.SetTransaction(*transaction, now)
            actions = getattr(actions, "$colon$plus")(named)
        nothing = self._option(None)
        what = self._delta.DeltaOperations.Write(
            self._mode("Append" if replaced is None else "Overwrite"), nothing,
            self._option(replaced), self._option(MARK),
            *[nothing] * 5,
        )  # fmt: skip
        return int(self._begun.commit(actions, what, self._map(fence.tags if fence else {})))

    def _option(self, value: object) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _mode(self, name: str) -> Any:
        return getattr(self._jvm.org.apache.spark.sql.SaveMode, name)

    def _list(self, values: Iterable[Any]) -> Any:
        given = self._jvm.java.util.ArrayList()
        for value in values:
            given.add(value)
        return self._scala(given).toSeq()

    def _map(self, values: Mapping[str, str]) -> Any:
        given = self._jvm.java.util.HashMap()
        for name, value in values.items():
            given.put(name, value)
        return getattr(self._jvm.scala.collection.immutable.Map, "from")(self._scala(given))

    def _scala(self, given: Any) -> Any:
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(given)
