"""A high watermark is at most the log end (I6); up to 2.3 truncation may leave it above."""

from replication.protocol.ground.verdict import Verdict, holds, violated
from replication.protocol.judgement.invariants.refuted import findings, judge_by_trace
from replication.protocol.judgement.view import View

NAME = "high_watermark_within_log"


def judge(view: View) -> Verdict:
    """HOLDS for cleanly stopped brokers by their files; a crash may leave a lawful excess."""
    broken = findings(view, NAME)
    if broken:
        return violated(NAME, broken)
    known = [r for r in view.state.replicas.values() if r.captured]
    if known and all(
        r.tail_known and r.high_watermark is not None and r.high_watermark <= r.log.log_end_offset
        for r in known
    ):
        return holds(
            NAME, "every cleanly stopped replica's checkpointed high watermark is within its log"
        )
    return judge_by_trace(
        view,
        NAME,
        "no high watermark passed its log's end",
        "log directories of cleanly stopped brokers",
    )
