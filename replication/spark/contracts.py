"""Reads schemas/: the columns of each table and of the event contract, for DDL and checks."""

import json
from dataclasses import dataclass, field
from functools import cache

from replication.paths import project_root
from replication.spark.topic_partition_ids import PARTS


@dataclass(frozen=True)
class Column:
    """One column. type: Spark SQL's type text. required_for, optional_for: kinds of events. words:
    kind -> what a text may be, where it is one of few words. of: the column beside it that it is
    made of, where it is made by the write itself."""

    name: str
    type: str
    nullable: bool
    meaning: str
    required_for: tuple[str, ...] = ()
    optional_for: tuple[str, ...] = ()
    words: dict[str, list[str]] = field(default_factory=dict)
    bookkeeping: bool = False
    of: str = ""


@dataclass(frozen=True)
class Table:
    """One file of schemas/. written: append, current (only the current answer), evidence (what the
    evidence of an import tells, beside the events) or view."""

    name: str
    about: str
    written: str
    columns: tuple[Column, ...]
    sql: str | None = None

    @property
    def is_of_jobs(self) -> bool:
        """Whether a stream or a replay makes it, and not an import by its evidence alone."""
        return self.written not in ("view", "evidence")

    @property
    def ddl(self) -> str:
        """The columns that are told, as Spark SQL's schema text, every one nullable."""
        return ", ".join(f"`{c.name}` {c.type}" for c in self.told)

    @property
    def struct(self) -> str:
        """The answer's columns as the type text of one struct."""
        return "struct<" + ",".join(f"{c.name}:{c.type}" for c in self.answer_columns) + ">"

    @property
    def answer_columns(self) -> tuple[Column, ...]:
        """The columns without run, micro_batch_id and those that are made of others."""
        return tuple(c for c in self.told if c.name not in ("run", "micro_batch_id"))

    @property
    def told(self) -> tuple[Column, ...]:
        """The columns that are not made of others."""
        return tuple(c for c in self.columns if not c.of)

    @property
    def made(self) -> dict[str, str]:
        """Column -> SQL over the columns that it is made of."""
        types = {c.name: c.type for c in self.columns}
        return {c.name: _made(c, types[c.of]) for c in self.columns if c.of}


def _made(column: Column, of_type: str) -> str:
    """SQL: milliseconds since the Unix epoch or ISO 8601 as a timestamp, or a part of an id."""
    if column.type != "timestamp":
        return PARTS[column.name]
    return f"timestamp_millis({column.of})" if of_type == "bigint" else f"timestamp({column.of})"


@cache
def tables() -> dict[str, Table]:
    """Every table of schemas/ by name, in the order in which a micro-batch writes them."""
    found = {}
    for path in sorted((project_root() / "schemas").glob("*.json")):
        text = json.loads(path.read_text(encoding="utf-8"))
        columns = []
        for column in text.pop("columns"):
            for key in ("required_for", "optional_for"):
                column[key] = tuple(column.get(key, ()))
            columns.append(Column(**column))
        name = text.pop("table")
        if "sql" in text:
            text["sql"] = "\n".join(text["sql"])
        found[name] = Table(name=name, columns=tuple(columns), **text)
    return found


@cache
def event_columns() -> tuple[Column, ...]:
    """The columns of an event as it is delivered: replica_events without our bookkeeping."""
    return tuple(c for c in tables()["replica_events"].columns if not c.bookkeeping)


@cache
def event_ddl() -> str:
    """The event contract as Spark SQL's schema text."""
    return ", ".join(f"`{c.name}` {c.type}" for c in event_columns())


@cache
def event_kinds() -> tuple[str, ...]:
    """Every kind of event, sorted; its place is its code within one run of a job."""
    kinds = {k for c in event_columns() for k in (*c.required_for, *c.optional_for)}
    return tuple(sorted(kinds | {"input_ended"}))
