"""Facts of log lines, made by hand."""

from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact


def line(
    kind: str, broker: int | None = 1, at: int | None = 0, number: int = 1, **fields: Any
) -> LogLineFact:
    """One line's fact about t-0. at: milliseconds."""
    return LogLineFact(
        kind=kind, at=at, path=f"broker-{broker}/server.log", line=number, broker=broker,
        topic="t", partition=0, fields=fields,
    )  # fmt: skip
