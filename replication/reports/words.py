"""The short answer in plain words: worst first, readable by somebody woken at night."""

from typing import Any

from replication.protocol.ground import picture
from replication.protocol.ground.topic_partition import State
from replication.reports.inventory_words import counted, inventory_text
from replication.reports.line_words import line_text

INVARIANT_WORDS = {
    "committed_records_survive": "committed records",
    "acknowledged_records_survive": "acknowledged records",
    "log_matching": "replicas agree",
}
TIER_WORDS = {
    "consumed": "that a consumer was given",
    "acknowledged_by_isr": "acknowledged with acks=all",
    "committed": "committed, acknowledgement unknown",
    "acknowledged_by_leader": "acknowledged with acks=1 only",
    "never_acknowledged": "never acknowledged",
    "undetermined": "of undetermined promise",
}
STATUS_WORDS = {
    "lost": "LOST: on no replica any more",
    "recoverable": "RECOVERABLE: a copy survives outside the leader's history",
    "recovered": "missing under an earlier leader, back now",
    "at_risk": "AT RISK: a candidate without them could be elected",
    "undetermined": "gone from the leader; whether elsewhere is not known",
}
CAUSE_WORDS = {
    "unclean_election": "an unclean election made a replica leader that did not have them",
    "truncate_to_high_watermark": "a follower cut its log to its own high watermark, then led "
    "(before KIP-101)",
    "storage_loss": "a broker came back with less on its disk than it had held",
    "last_replica_standing": "the ISR had shrunk below min.insync.replicas, and the last member "
    "lost its tail (KIP-966)",
    "acks_one_failover": "the leader failed before its followers had copied them; acks=1 does "
    "not wait for that",
    "divergence_overwrite": "the leader's log was overwritten by another line of records",
    "out_of_range_reset": "a follower reset its log by offset alone",
    "early_isr_join": "a replica joined the ISR before it had everything (KAFKA-7128)",
    "premature_high_watermark": "the high watermark passed records that a member of the ISR lacked",
    "log_dir_failure": "a log directory failed",
    "unknown": "the cause is not shown by this evidence",
}
CONTRACT_WORDS = {
    "broken": "Kafka had promised to keep them.",
    "not_promised": "Kafka's settings here did not promise to keep them.",
    "unknown": "Whether Kafka had promised to keep them depends on settings not seen.",
}


def offsets(first: int, end: int) -> str:
    """An offset range in words; the end is exclusive."""
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def name(row: dict[str, Any]) -> str:
    """The partition's name as Kafka prints it."""
    return f"{row['topic']}-{row['partition']}"


def short_text(answer: dict[str, Any]) -> str:
    """The answer of `diagnose --format text`."""
    lines = [headline(answer), ""]
    for loss in sorted(answer["losses"], key=badness):
        lines += loss_words(loss)
    for d in answer["divergences"]:
        if d["status"] == "settled":
            lines += [
                f"DIVERGED  {name(d)}  {offsets(d['first_offset'], d['end_offset'])}: replicas "
                f"{d['replicas'][0]} and {d['replicas'][1]} hold different records",
                "  No truncation will mend it. Compare the two copies before you delete either.",
                f"  proof: replication-analyzer explain {d['finding_id']} PATH",
                "",
            ]
    lines += _other_violations(answer)
    lines += _warnings(answer)
    lines += line_text(answer)
    lines += _table(answer)
    lines += _unknowns(answer)
    lines += inventory_text(answer.get("inventory", {}))
    lines += _input(answer)
    return "\n".join(lines).rstrip() + "\n"


def headline(answer: dict[str, Any]) -> str:
    """One sentence that says whether anything is wrong."""
    gone = sum(x["records"] for x in answer["losses"] if x["status"] in ("lost", "undetermined"))
    kept = sum(x["records"] for x in answer["losses"] if x["status"] == "recoverable")
    settled = [d for d in answer["divergences"] if d["status"] == "settled"]
    violated = [v for v in answer["verdicts"] if v["verdict"] == "VIOLATED"]
    partitions = len(answer["partitions"])
    where = f"{partitions} partition" + ("" if partitions == 1 else "s")
    if not violated:
        undecided = {
            (v["topic"], v["partition"])
            for v in answer["verdicts"]
            if v["verdict"] == "UNKNOWN"
            and v["invariant"] in ("committed_records_survive", "log_matching")
        }
        if undecided:
            return f"Nothing is shown to be wrong in {where}; {len(undecided)} not fully decided."
        return f"Nothing lost, nothing diverged in {where}."
    parts = []
    if gone:
        parts.append(f"{gone} promised records lost")
    if kept:
        parts.append(f"{kept} missing from the leader but still on a replica")
    if settled:
        parts.append(f"replicas diverged in {len(settled)} places")
    if not parts:
        parts.append(f"{len(violated)} promises broken")
    return f"{', '.join(parts)} ({where} looked at)."


def loss_words(loss: dict[str, Any]) -> list[str]:
    """One row of the loss ledger as a few lines."""
    count = loss["records"]
    noun = "record" if count == 1 else "records"
    lines = [
        f"{STATUS_WORDS[loss['status']].split(':')[0].upper()}  {name(loss)}  "
        f"{offsets(loss['first_offset'], loss['end_offset'])} ({count} {noun}), "
        f"{TIER_WORDS[loss['tier']]}",
        f"  {STATUS_WORDS[loss['status']]}.",
        f"  Why: {CAUSE_WORDS[loss['cause']]}.",
    ]
    for extra in loss["contributing"]:
        lines.append(f"  Also: {CAUSE_WORDS[extra]}.")
    lines.append(f"  {CONTRACT_WORDS[loss['contract']]}")
    for copy in loss["surviving_copies"]:
        what = "its log" if copy["kind"] == "replica" else "an older copy among the evidence"
        line = f"  A copy: broker {copy['replica']}, {what}"
        if copy["destroyed_when"]:
            line += f"; destroyed when {copy['destroyed_when']}"
        lines.append(line + ".")
    lines += [f"  proof: replication-analyzer explain {loss['finding_id']} PATH", ""]
    return lines


def badness(loss: dict[str, Any]) -> tuple[int, int, str, int, int]:
    """Sort key of the loss ledger's rows: the strongest promise first, then the worst status."""
    status = ("lost", "undetermined", "recoverable", "at_risk", "recovered")
    tier = ("consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader")
    return (
        tier.index(loss["tier"]) if loss["tier"] in tier else 9,
        status.index(loss["status"]),
        loss["topic"],
        loss["partition"],
        loss["first_offset"],
    )


def _other_violations(answer: dict[str, Any]) -> list[str]:
    told = {
        "committed_records_survive",
        "acknowledged_records_survive",
        "consumed_records_survive",
        "log_matching",
    }
    lines = []
    for v in answer["verdicts"]:
        if v["verdict"] == "VIOLATED" and v["invariant"] not in told:
            lines += [
                f"BROKEN  {name(v)}  {v['invariant']}: {v['reason']}",
                f"  proof: replication-analyzer explain {v['finding_ids'][0]} PATH",
                "",
            ]
    return lines


def _warnings(answer: dict[str, Any]) -> list[str]:
    return [
        line
        for f in answer["findings"]
        if f.get("kind")
        for line in (
            f"WARNING  {name(f)}  {f['kind']}: {f['summary']}",
            f"  proof: replication-analyzer explain {f['finding_id']} PATH",
            "",
        )
    ]


def _table(answer: dict[str, Any]) -> list[str]:
    shown = list(INVARIANT_WORDS)
    rows = [("partition", *(INVARIANT_WORDS[i] for i in shown))]
    seen: dict[tuple[Any, ...], dict[str, str]] = {}
    for v in answer["verdicts"]:
        key = (v["cluster_id"], v["topic"], v["topic_id"], v["partition"])
        seen.setdefault(key, {})[v["invariant"]] = v["verdict"]
    for key, verdicts in seen.items():
        rows.append((f"{key[1]}-{key[3]}", *(verdicts.get(i, "") for i in shown)))
    order = {"VIOLATED": 0, "UNKNOWN": 1, "HOLDS": 2}
    body = sorted(rows[1:], key=lambda r: min(order.get(c, 3) for c in r[1:]))
    limit = 40
    widths = [max(len(r[i]) for r in [rows[0], *body[:limit]]) for i in range(len(rows[0]))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip()
        for r in [rows[0], *body[:limit]]
    ]
    if len(body) > limit:
        lines.append(f"... and {len(body) - limit} more partitions, none of them worse")
    return [*lines, ""]


def _unknowns(answer: dict[str, Any]) -> list[str]:
    wanted: dict[str, int] = {}
    for v in answer["verdicts"]:
        if v["verdict"] == "UNKNOWN" and v["invariant"] in INVARIANT_WORDS:
            for artefact in v["settled_by"]:
                wanted[artefact] = wanted.get(artefact, 0) + 1
    if not wanted:
        return []
    lines = ["Not decided. What would decide it:"]
    for artefact, count in sorted(wanted.items(), key=lambda kv: (-kv[1], kv[0]))[:8]:
        lines.append(f"  {artefact} ({counted(count, 'verdict')})")
    return [*lines, ""]


def _input(answer: dict[str, Any]) -> list[str]:
    counts = answer["input"]
    lines = [
        f"Read {counted(counts['files'], 'file')}; {counted(counts['events'], 'event')}: "
        f"{counts['applied']} "
        f"applied, {counts['duplicates']} duplicates, {counts['quarantined']} quarantined, "
        f"{counts['held']} held."
    ]
    unreadable = counts["unreadable"]
    if unreadable:
        lines.append(f"{counted(len(unreadable), 'place')} could not be read:")
        for u in unreadable[:5]:
            lines.append(f"  {u['path']} ({u['where']}): {u['reason']}")
        if len(unreadable) > 5:
            lines.append(f"  ... and {len(unreadable) - 5} more (--format json lists all)")
    return lines


def proof(finding: dict[str, Any], events: dict[str, Any]) -> str:
    """A finding as a proof: steps, because, contradiction, each with its file and line.

    events: the events that the steps name, by event_id; any object with observed_at and source.
    """
    warns = finding.get("kind")
    lines = [
        f"{warns} in {name(finding)}"
        if warns
        else f"{finding['invariant']} is violated for {name(finding)}",
        f"  {finding['summary']}",
        "",
    ]
    for number, step in enumerate(finding["witness"], start=1):
        lines.append(f"{number}. {step['because']}")
        event = events.get(step["event_id"])
        source = getattr(event, "source", None)
        if source is not None:
            place = source.path
            if source.line is not None:
                place += f", line {source.line}"
            elif source.byte_offset is not None:
                place += f", offset {source.byte_offset}"
            lines.append(f"   because: {place}")
    if not warns:
        lines += ["", f"Contradiction: {finding['invariant']} demands that this cannot be."]
    return "\n".join([*lines, ""])


LEGEND = (
    "A line is a replica: its broker (* leads, ! stopped), the leader epoch it knows (e3), its",
    "log as LEADER EPOCH:RECORD (*5: five of them) from the first offset on; | is its high",
    "watermark. [7]: it begins at offset 7. r: what every copy holds; r_b: another record at the",
    "same offset; a dot: records that are there and were not seen.",
)


def draw(state: State, at: int | None) -> str:
    """The replicas' logs of one partition's state, in the drawing that scenarios use too."""
    registration = state.registration
    when = "at the end" if at is None else f"after event {at}"
    isr = ",".join(str(r) for r in registration.isr or ())
    head = (
        f"{state.topic}-{state.partition} {when}: leader {registration.leader}, leader epoch "
        f"{registration.leader_epoch}, ISR {isr}"
    )
    rows = [
        picture.Row(
            name=str(number),
            spans=tuple(replica.log.spans),
            high_watermark=replica.high_watermark,
            leader_epoch=replica.leader_epoch,
            log_start_offset=replica.log.log_start_offset,
            log_end_offset=replica.log.log_end_offset,
            leads=number == registration.leader,
            stopped=bool(replica.stopped),
        )
        for number, replica in sorted(state.replicas.items())
    ]
    return "\n".join([head, *picture.draw(rows, _content_name), "", *LEGEND])


def _content_name(content: int) -> str:
    """Content 0 is what every copy holds; a letter tells another record at the same offset."""
    return "r" if content == 0 else "r" + "_abcdefghijklmnopqrstuvwxyz"[min(content, 26)]
