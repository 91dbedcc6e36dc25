"""Facts of log lines, broker logs and promises, made by hand."""

from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import Packer
from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.collecting.broker_text_log import BrokerLog


def line(
    kind: str, broker: int | None = 1, at: int | None = 0, number: int = 1, **fields: Any
) -> LogLineFact:
    """One line's fact about t-0. at: milliseconds."""
    return LogLineFact(
        kind=kind, at=at, path=f"broker-{broker}/server.log", line=number, broker=broker,
        topic="t", partition=0, fields=fields,
    )  # fmt: skip


def log(broker: int | None, *facts: LogLineFact, **more: Any) -> BrokerLog:
    """One broker's file with these lines, none of which names its writer."""
    path = f"broker-{broker}/server.log"
    packer = Packer(path)
    for fact in facts:
        if fact.topic is not None:
            packer.add(fact._replace(broker=None, path=path))
    return BrokerLog(
        path,
        broker,
        processes=[f._replace(broker=None, path=path) for f in facts if f.topic is None],
        lines=packer.done(),
        writers=[None],
        **more,
    )


def process(kind: str, at: int = 0, number: int = 1, **fields: Any) -> LogLineFact:
    """One line's fact about a broker's process."""
    return line(kind, at=at, number=number, **fields)._replace(topic=None, partition=None)


def acknowledged(payload_id: str | None, ts: int = 0, **more: Any) -> Acknowledgement:
    """A record that a producer was told is written."""
    fields: dict[str, Any] = {
        "client": "p", "topic": "t", "partition": 0, "offset": None, "acks": "all",
        "status": "acked", "producer_id": None, "producer_epoch": None, "sequence": None,
        "topic_id": None, "error": None, "path": "acks.jsonl", "line": 1,
    }  # fmt: skip
    return Acknowledgement(ts=ts, payload_id=payload_id, **{**fields, **more})
