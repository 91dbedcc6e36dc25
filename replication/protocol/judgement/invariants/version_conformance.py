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
    return judge_by_trace(
        view,
        NAME,
        f"every traced step follows the rules of {view.state.settings.kafka_version}",
        "broker logs with kafka.cluster.Partition, kafka.server.ReplicaFetcherThread and the log "
        "class at TRACE",
    )
