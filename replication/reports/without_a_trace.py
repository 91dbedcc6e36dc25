"""What a good answer cannot show: that no record vanished which nothing here tells of.

One place for the words, since each command that finds nothing lost rests on the same assumption.
"""

from typing import Any

from replication.protocol.histories.assumptions import RECORDS_AS_SEEN

_ABOUT_LOSSES = ("committed_records_survive", "acknowledged_records_survive")
NOT_KNOWN = "whether records vanished without a trace is not known"
WHAT_TELLS = (
    "an acknowledgement log of the producers tells that; what else would: "
    "replication-analyzer collect PATH"
)


def partitions_as_seen(answer: dict[str, Any]) -> int:
    """In how many partitions "nothing lost" rests on it that no record was written that nothing
    here shows. answer: that of `diagnose`."""
    return len(
        {
            (v["cluster_id"], v["topic"], v["topic_id"], v["partition"])
            for v in answer["verdicts"]
            if v["invariant"] in _ABOUT_LOSSES
            and v["verdict"] == "HOLDS"
            and RECORDS_AS_SEEN in (v.get("assuming") or ())
        }
    )


def not_known(answer: dict[str, Any]) -> str:
    """What is not known of a loss that left no trace, and of how many partitions where it is not
    all; empty where the evidence shows it."""
    number, of = partitions_as_seen(answer), len(answer["partitions"])
    where = f" of {number:,} of {of:,} partitions" if 0 < number < of else ""
    return f"{NOT_KNOWN}{where}" if number else ""


def caveat(answer: dict[str, Any]) -> list[str]:
    """The same as a sentence of its own, with what would tell; none where nothing rests on it."""
    told = not_known(answer)
    return [f"{told[:1].upper()}{told[1:]}: {WHAT_TELLS}."] if told else []
