"""The answer about one topic partition, in the words and shapes of the outward contract.

Pure: the same state gives the same answer, in every host.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from replication.protocol.folding.conformance.unforetold import REASONS, unforetold
from replication.protocol.folding.reconstruction import derived_values
from replication.protocol.ground.model import moment
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import UNKNOWN, VIOLATED, Finding, Verdict
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.declared_gaps import with_gaps
from replication.protocol.judgement.invariants import (
    acknowledged_records_survive,
    committed_records_survive,
    consumed_records_survive,
    high_watermark_within_log,
    isr_within_assignment,
    leader_epochs_monotonic,
    leader_high_watermark_monotonic,
    leader_in_isr,
    log_matching,
    single_leader_per_epoch,
    version_conformance,
)
from replication.protocol.judgement.lawful_removals import lawful_removals
from replication.protocol.judgement.loss import Loss
from replication.protocol.judgement.missed_epochs import missed_epochs
from replication.protocol.judgement.older_copies import older_copies
from replication.protocol.judgement.risk_rows import past_row, present_row
from replication.protocol.judgement.settling import still_to_get
from replication.protocol.judgement.view import View, view_of

INVARIANTS = (
    committed_records_survive,
    acknowledged_records_survive,
    log_matching,
    consumed_records_survive,
    single_leader_per_epoch,
    leader_epochs_monotonic,
    leader_high_watermark_monotonic,
    high_watermark_within_log,
    isr_within_assignment,
    leader_in_isr,
    version_conformance,
)


@dataclass(slots=True)
class PartitionAnswer:
    """JSON-able objects of the outward contract for one topic partition."""

    partition: dict[str, Any]
    verdicts: list[dict[str, Any]]
    losses: list[dict[str, Any]]
    divergences: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    at_risk: list[dict[str, Any]]
    past_risks: list[dict[str, Any]]
    loss_details: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)


def answer(state: State, *, strict: bool = False) -> PartitionAnswer:
    """Judges every invariant: what was lost, where replicas differ, and the proofs.

    strict: nothing is taken for granted (histories/assumptions.py).
    """
    view = view_of(state, strict=strict)
    identity = (state.cluster_id, state.topic, state.topic_id, state.partition)
    judged = [module.judge(view) for module in INVARIANTS]
    verdicts = [with_gaps(view.gaps, state, v) for v in judged]
    named: dict[str, Finding] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            named.setdefault(finding.finding_id(identity), finding)
    for warning in missed_epochs(state, view.losses):
        named.setdefault(warning.finding_id(identity), warning)
    for loss in view.losses:
        if loss.finding is not None:
            named.setdefault(loss.finding.finding_id(identity), loss.finding)
    return PartitionAnswer(
        _partition(state),
        [_verdict(state, view, identity, v) for v in verdicts],
        [_loss(state, identity, x) for x in view.losses],
        _divergences(state, view, identity, verdicts),
        [
            _finding(state, k, f)
            for k, f in sorted(named.items(), key=lambda kv: (kv[1].invariant, kv[0]))
        ],
        [{**_identity(state), **present_row(state, d)} for d in dangers(state)],
        [
            {**_identity(state), **past_row(risk, run)}
            for risk in state.risks.past
            for run in risk.runs
        ],
        [_loss_details(state, identity, x) for x in view.losses],
        [{**_identity(state), **asdict(x)} for x in lawful_removals(view)],
    )


def _identity(state: State) -> dict[str, Any]:
    return {
        "cluster_id": state.cluster_id or None,
        "topic": state.topic,
        "topic_id": state.topic_id or None,
        "partition": state.partition,
    }


def _partition(state: State) -> dict[str, Any]:
    registration = state.registration
    assigned = state.settings.assigned_replicas
    if assigned is None and state.ever_assigned:
        assigned = tuple(sorted(state.ever_assigned))
    return {
        **_identity(state),
        "assigned_replicas": None if assigned is None else list(assigned),
        "leader": registration.leader if registration.event_id else state.settings.leader,
        "leader_epoch": registration.leader_epoch if registration.leader_epoch >= 0 else None,
        "isr": None if registration.isr is None else list(registration.isr),
        "min_insync_replicas": state.settings.min_insync_replicas,
        "replicas": [
            {
                "replica": number,
                "log_start_offset": r.log.log_start_offset,
                "log_end_offset": r.log.log_end_offset,
                "high_watermark": r.high_watermark,
                "spans": _shown_spans(r.log.spans),
                "as_of": moment(r.observed_at),
                "stopped": r.stopped,
            }
            for number, r in sorted(state.replicas.items())
        ],
        "elections": [
            {
                "leader_epoch": t.leader_epoch,
                "leader": t.leader,
                "kind": t.election_kind or "unknown",
                "isr": None if t.isr is None else list(t.isr),
                "observed_at": moment(t.observed_at),
            }
            for t in state.history.terms
            if t.occurrence == 0
        ],
        "truncations": [
            {
                "replica": t.replica,
                "from_offset": t.from_offset,
                "to_offset": t.to_offset,
                "reason": t.reason,
                "observed_at": moment(t.observed_at),
            }
            for t in state.history.truncations
        ],
        "derived": _derived(state),
        "conformance": {
            "foretold": state.conformance.predicted,
            "not_foretold": [
                {**asdict(x), "because": REASONS[x.reason]} for x in unforetold(state)
            ],
        },
        "older_copies": [
            {
                "replica": c.replica,
                "kind": c.kind,
                "as_of": moment(c.as_of),
                "path": state.sources.get(c.shown_by, (None, None, None))[0],
                "alone": [list(run) for run in c.alone],
            }
            for c in older_copies(state)
        ],
    }


def _derived(state: State) -> list[dict[str, Any]]:
    return [
        {
            "what": d.what,
            "replica": d.replica,
            "offset": d.offset,
            "leader_epoch": d.leader_epoch,
            "rule": d.rule,
            "because": d.because,
        }
        for d in derived_values(state)
    ]


def _shown_spans(spans: list[Any]) -> list[list[int | None]]:
    """Spans as (leader epoch, first offset, end offset); contents are not outward."""
    result: list[list[int | None]] = []
    for span in spans:
        if result and result[-1][0] == span.leader_epoch and result[-1][2] == span.first_offset:
            result[-1][2] = span.end_offset
        else:
            result.append([span.leader_epoch, span.first_offset, span.end_offset])
    return result


def _verdict(
    state: State, view: View, identity: tuple[Any, ...], verdict: Verdict
) -> dict[str, Any]:
    is_open = verdict.verdict == UNKNOWN or bool(verdict.settled_by)
    traced = state.grade == "traced" and all(
        view.covered("replica_trace", r) for r in state.replicas
    )
    return {
        **_identity(state),
        "invariant": verdict.invariant,
        "verdict": verdict.verdict,
        "evidence": "traced" if traced and state.replicas else "forensic",
        "payload_verified": view.covered("payloads"),
        "not_supplied": verdict.not_supplied,
        "finding_ids": [f.finding_id(identity) for f in verdict.findings],
        "reason": verdict.reason,
        "settled_by": still_to_get(state, verdict.settled_by) if is_open else [],
        "assuming": verdict.assuming,
        "histories": verdict.histories,
    }


def _loss(state: State, identity: tuple[Any, ...], loss: Loss) -> dict[str, Any]:
    return {
        **_identity(state),
        "first_offset": loss.first_offset,
        "end_offset": loss.end_offset,
        "end_offset_bound": loss.end_offset_bound,
        "records": loss.end_offset - loss.first_offset,
        "leader_epoch": loss.record.leader_epoch,
        "lost_at": moment(loss.lost_in.observed_at) if loss.lost_in else None,
        "acknowledged_from": moment(loss.acknowledged_from),
        "acknowledged_until": moment(loss.acknowledged_until),
        "tier": loss.tier,
        "contract": loss.contract,
        "status": loss.status,
        "surviving_copies": [
            {
                "replica": c.replica,
                "kind": c.kind,
                "as_of": moment(c.as_of),
                "destroyed_when": c.destroyed_when,
            }
            for c in loss.copies
        ],
        "cause": loss.cause.name,
        "contributing": list(loss.cause.contributing),
        "causes": list(loss.cause.one_of),
        "assuming": sorted(loss.assuming),
        "finding_id": loss.finding.finding_id(identity) if loss.finding else None,
        "next_leader": loss.lost_in.leader if loss.lost_in else None,
        "next_leader_epoch": loss.lost_in.leader_epoch if loss.lost_in else None,
        "election_kind": loss.lost_in.election_kind if loss.lost_in else None,
        "allowed_by": _settings(loss),
        "lost_on": sorted(loss.cause.lossy),
        "copy_paths": [path for path in _copy_paths(state, loss) if path is not None],
    }


def _settings(loss: Loss) -> list[dict[str, str]]:
    return [{"setting": s, "value": v} for s, v in loss.allowed_by]


def _copy_paths(state: State, loss: Loss) -> list[str | None]:
    """Where each copy that has the records was read."""
    return [state.sources.get(c.shown_by or "", (None, None, None))[0] for c in loss.copies]


def _loss_details(state: State, identity: tuple[Any, ...], loss: Loss) -> dict[str, Any]:
    """What a report says of a loss beyond the ledger's row of the same finding_id.

    clients and first_keys are filled by who has the acknowledgement log at hand.
    """
    term = loss.lost_in
    return {
        **_identity(state),
        "finding_id": loss.finding.finding_id(identity) if loss.finding else None,
        "election": None
        if term is None
        else {
            "leader": term.leader,
            "leader_epoch": term.leader_epoch,
            "kind": term.election_kind or "unknown",
            "at": term.observed_at,
            "observed_at": moment(term.observed_at),
        },
        "allowed_by": _settings(loss),
        "copies": [
            {"replica": c.replica, "kind": c.kind, "as_of": moment(c.as_of), "path": path}
            for c, path in zip(loss.copies, _copy_paths(state, loss), strict=True)
        ],
        "clients": [],
        "first_keys": [],
    }


def _divergences(
    state: State, view: View, identity: tuple[Any, ...], verdicts: list[Verdict]
) -> list[dict[str, Any]]:
    ids = {
        f.key[1:5]: f.finding_id(identity)
        for v in verdicts
        if v.verdict == VIOLATED
        for f in v.findings
        if f.key[0] == "divergence"
    }
    return [
        {
            **_identity(state),
            "replicas": [d.a, d.b],
            "first_offset": d.first_offset,
            "end_offset": d.end_offset,
            "status": d.status,
            "finding_id": ids.get((d.a, d.b, d.first_offset, d.end_offset)),
        }
        for d in view.divergences
    ]


def _finding(state: State, finding_id: str, finding: Finding) -> dict[str, Any]:
    sources = []
    for step in finding.steps:
        at = state.place_of(step.event_id)
        if at is not None:
            path, line, byte_offset = at
            place: dict[str, Any] = {"path": path}
            if line is not None:
                place["line"] = line
            if byte_offset is not None:
                place["byte_offset"] = byte_offset
            if place not in sources:
                sources.append(place)
    return {
        **_identity(state),
        "finding_id": finding_id,
        "kind" if finding.warns else "invariant": finding.invariant,
        "severity": finding.severity,
        "summary": finding.summary,
        "witness": [{"event_id": s.event_id, "because": s.because} for s in finding.steps],
        "source": sources,
    }
