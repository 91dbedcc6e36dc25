"""Groups and transactions that losses hurt, for an answer that has losses."""

from typing import Any

from replication.evidence.coordinator_records import TOPICS
from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.groups.affected_groups import read_groups
from replication.recovery.groups.affected_transactions import affected_transactions
from replication.recovery.ledger_rows import NOT_BACK


def who_was_hurt(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """The answer's keys `affected_groups` and `affected_transactions`.

    The coordinators' logs are read only where a record is lost, or where a coordinator's own log
    may have lost one."""
    lost = any(x["status"] in NOT_BACK for x in answer["losses"])
    open_one = any(v["topic"] in TOPICS and v["verdict"] == "UNKNOWN" for v in answer["verdicts"])
    if not (lost or open_one):
        return {"affected_groups": [], "affected_transactions": []}
    return {
        "affected_groups": read_groups(imported, folded, answer["losses"]).affected,
        "affected_transactions": affected_transactions(imported, folded, answer["losses"]),
    }
