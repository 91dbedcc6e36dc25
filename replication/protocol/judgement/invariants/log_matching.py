"""Two replicas hold the same record at each offset both hold (I2), once truncation is done.

A difference that may not stay is pending, no violation. ISR membership does not matter.
"""

from replication.protocol.ground.verdict import (
    Finding,
    Step,
    Verdict,
    holds,
    unknown,
    violated,
)
from replication.protocol.histories.stretches import Stretch
from replication.protocol.judgement.divergence import Divergence
from replication.protocol.judgement.fates import Fate
from replication.protocol.judgement.questions import MATCHING as NAME
from replication.protocol.judgement.questions import differing
from replication.protocol.judgement.survival import open_verdict, unknown_log
from replication.protocol.judgement.view import View

AGREE, DIFFER = "all replicas agree", "two replicas differ"


def judge(view: View) -> Verdict:
    """HOLDS where no history leaves two replicas with different records, VIOLATED where each does
    at one offset, and where two copies do that no history explains; UNKNOWN else, and where only
    headers differ, which no CRC covers."""
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted: no replica is left to differ")
    broken = view.fates.broken(NAME)
    undecided = [fate.stretch for fate in view.fates.undecided(NAME)]
    runs = [fate.stretch for fate, _ in broken]
    runs += [s for s in undecided if s.contradicted or s.admitted.too_many]
    runs += [fate.stretch for fate in view.fates.runs if fate.stretch.lines_missing]
    for d in view.divergences:
        if d.status == "settled" and not any(_touches(d, stretch) for stretch in runs):
            d.status = "pending"
    settled = [d for d in view.divergences if d.status == "settled"]
    if broken or settled:
        if not settled:
            settled = [_differing(fate) for fate, _ in broken]
            view.divergences += settled
        verdict = violated(NAME, [finding(view, d) for d in settled])
        rest_on = (sorted(assuming) for _, assuming in broken)
        verdict.assuming = min(rest_on, key=lambda names: (len(names), names), default=[])
        if any(not s.contradicted and not s.admitted.too_many for s in undecided):
            verdict.add_open(open_verdict(view, NAME, AGREE, DIFFER))
        return verdict
    mismatched = [d for d in view.divergences if d.status == "header_mismatch"]
    if mismatched:
        d = mismatched[0]
        return unknown(
            NAME,
            f"replicas {d.a} and {d.b} have equal bytes under different leader epochs at "
            f"offsets {d.first_offset}..{d.end_offset - 1}",
            ["the segments of both replicas, read again: the epoch is outside the CRC"],
        )
    if undecided:
        return open_verdict(view, NAME, AGREE, DIFFER)
    not_known = unknown_log(view)
    if not_known is not None:
        return unknown(NAME, *not_known)
    verdict = holds(NAME, "no history that fits the evidence leaves two replicas that differ")
    verdict.assuming = sorted(view.fates.assumed_to_hold(NAME))
    return verdict


def _touches(d: Divergence, stretch: Stretch) -> bool:
    return d.end_offset > stretch.first and (stretch.end is None or d.first_offset < stretch.end)


def _differing(fate: Fate) -> Divergence:
    """Two replicas that differ at a run of offsets, as no two copies show it."""
    first, end = fate.stretch.first, fate.stretch.end
    a, b = differing(fate.stretch.admitted)
    return Divergence(a, b, first, first + 1 if end is None else end, "settled")


def finding(view: View, d: Divergence) -> Finding:
    """The proof of one settled difference."""
    state = view.state
    last = d.end_offset - 1
    where = f"offset {last}" if last == d.first_offset else f"offsets {d.first_offset}..{last}"
    steps = []
    for number in (d.a, d.b):
        replica = state.replicas[number]
        here = (s for s in replica.log.spans if s.first_offset <= d.first_offset < s.end_offset)
        held = next(here, None)
        holds_it = "is left with another record"
        if held is not None:
            of = "no epoch" if held.leader_epoch is None else f"epoch {held.leader_epoch}"
            holds_it = f"holds {of}" + ("" if held.content is None else f", content {held.content}")
        steps.append(Step(replica.as_of or "", f"replica {number} {holds_it} at {where}"))
    return Finding(
        NAME,
        "critical",
        f"replicas {d.a} and {d.b} hold different records at {where}, and no truncation will "
        "mend it",
        ("divergence", d.a, d.b, d.first_offset, d.end_offset),
        steps,
    )
