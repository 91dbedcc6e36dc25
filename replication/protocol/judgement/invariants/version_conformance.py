"""A replica does only what the rules of its Kafka version allow."""

from replication.protocol.folding.conformance.expected import is_excluded
from replication.protocol.ground.verdict import Finding, Step, Verdict, unknown, violated
from replication.protocol.judgement.invariants.refuted import findings, judge_by_trace
from replication.protocol.judgement.view import View

NAME = "version_conformance"


def judge(view: View) -> Verdict:
    """UNKNOWN for vendor builds and without a trace of the steps."""
    broken = findings(view, NAME) + [
        Finding(NAME, "critical", x.summary, ("step", x.event_id), [Step(x.event_id, x.summary)])
        for x in view.state.conformance.open
        if is_excluded(view.state, x)
    ]
    if broken:
        return violated(NAME, broken)
    if view.state.behaviour() is None:
        version = view.state.settings.kafka_version
        why = (
            "the Kafka version is not known"
            if version is None
            else (f"{version} is no Apache Kafka version whose rules are known")
        )
        return unknown(
            NAME,
            why,
            ["broker logs from a start (they print the version)", "--kafka VERSION"],
            missing=version is None,
        )
    unseen = _without_fetches(view)
    if unseen:
        return unknown(
            NAME,
            f"no fetch that leader {unseen[0]} handled was traced: what it let its high watermark "
            "rest on is not known",
            [f"broker {b}'s log with kafka.cluster.Partition at DEBUG" for b in unseen],
        )
    return judge_by_trace(
        view,
        NAME,
        f"every traced step follows the rules of {' and '.join(view.state.versions())}",
        "broker logs with kafka.cluster.Partition, kafka.server.ReplicaFetcherThread and the log "
        "class at TRACE",
    )


def _without_fetches(view: View) -> list[int]:
    """Traced leaders whose high watermark moved over followers, with no line of any fetch."""
    return sorted(
        {
            r.leader
            for r in view.state.conformance.terms.values()
            if r.leader is not None
            and len(set(r.high_watermarks)) > 1
            and (r.least or 0) > 1
            and not r.asked
        }
    )
