"""What losses did to transactions, in sentences."""

from collections.abc import Callable
from typing import Any

from replication.reports.event_words import offset_range
from replication.reports.inventory_words import counted
from replication.reports.safe_text import escaped

MOST_SHOWN = 20
MORE_BY = "replication-analyzer groups PATH --format json"
_STATUS = {
    "ongoing": "is under way",
    "prepare_commit": "is being committed",
    "prepare_abort": "is being aborted",
    "prepare_epoch_fence": "is being aborted",
    "complete_commit": "was committed",
    "complete_abort": "was aborted",
    "empty": "has not begun",
    "dead": "is forgotten",
}


def transaction_sentence(row: dict[str, Any]) -> str:
    """One affected transaction."""
    sure = "" if row["certain"] else f" (Not certain: {_WHY_NOT[row['kind']]}.)"
    return _SENTENCES[row["kind"]](row) + sure


def _whose(row: dict[str, Any]) -> str:
    name = row["transactional_id"]
    told = f"producer {row['producer_id']}, epoch {row['producer_epoch']}"
    return f"transactional id {name} ({told})" if name is not None else told


def _where(row: dict[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def _state(status: str | None) -> str:
    if status is None:
        return "it knows no such producer"
    return f"for it the transaction {_STATUS.get(status, status)}"


def _hanging(row: dict[str, Any]) -> str:
    end = (
        f"--topic {row['topic']} --partition {row['partition']} --start-offset "
        f"{row['first_offset']}"
    )
    return (
        f"{_where(row)}: {offset_range(row['first_offset'], row['end_offset'])} of {_whose(row)} "
        f"are in a transaction that the coordinator is not going to end "
        f"({_state(row['coordinator_status'])}). Consumers with isolation.level=read_committed "
        f"stop at offset {row['first_offset']}. See kafka-transactions.sh find-hanging; "
        f"abort {end} ends it, and then they do not see these records."
    )


def _forgotten(row: dict[str, Any]) -> str:
    lost = _STATUS.get(row["lost_coordinator_status"], row["lost_coordinator_status"])
    places = f" Its partitions: {', '.join(row['also_in'])}." if row["also_in"] else ""
    return (
        f"The coordinator's newest record of {_whose(row)} was lost. By that "
        f"record its transaction {lost}; now {_state(row['coordinator_status'])}. "
        "The coordinator ends what it has not ended yet by what it knows now, so "
        f"the partitions of one transaction may come to differ.{places}"
    )


def _in_part(row: dict[str, Any]) -> str:
    return (
        f"{_where(row)}: {offset_range(row['first_offset'], row['end_offset'])} of {_whose(row)} "
        f"are lost in whole or in part, while {', '.join(row['also_in'])} has records of the same "
        "transaction, committed: consumers see half of it."
    )


_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "hanging": _hanging,
    "coordinator_forgot": _forgotten,
    "lost_in_part": _in_part,
}
_WHY_NOT = {
    "hanging": "the copies may be of different moments, or a coordinator's log is missing",
    "coordinator_forgot": "the copy at hand is not that of the coordinator's leader, stopped",
    "lost_in_part": "that it is the same transaction is told by the times alone",
}


def transactions_text(answer: dict[str, Any]) -> list[str]:
    """The transactions that losses hurt, in the text of `diagnose`."""
    rows = answer.get("affected_transactions", ())
    if not rows:
        return []
    lines = [f"HURT  {counted(len(rows), 'transaction')}:"]
    lines += [f"  {transaction_sentence(row)}" for row in rows[:3]]
    more = [f"  and {len(rows) - 3} more: {MORE_BY}"] if len(rows) > 3 else []
    return [*lines, *more, ""]


def transactions_html(answer: dict[str, Any]) -> str:
    """The transactions that losses hurt, as a section of the page; "" where there is none."""
    rows = answer.get("affected_transactions", ())
    if not rows:
        return ""
    items = "".join(f"<li>{escaped(transaction_sentence(row))}</li>" for row in rows[:MOST_SHOWN])
    if len(rows) > MOST_SHOWN:
        items += f"<li>and {len(rows) - MOST_SHOWN:,} more: <code>{MORE_BY}</code></li>"
    return (
        f"<section id=transactions><h2>Transactions that were hurt</h2><ul>{items}</ul></section>"
    )
