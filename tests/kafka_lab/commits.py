"""Which records were committed, since when, and which may have been: no rule of the product here.

A record is committed under a term - a leader that the controller named, until it names another -
whose leader held it: when the leader acknowledged it, or a later one of its log, at acks=all; when
a high watermark above it was seen; or when the leader was alone in the ISR, nobody fetched from it,
and it wrote on. What a deposed leader still acknowledges, and what its high watermark reaches then,
commits nothing.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from tests.kafka_lab.history import LeaderTerm, seconds_of
from tests.kafka_lab.lineage import SOON, Replicas
from tests.kafka_lab.logs_on_disk import Held
from tests.kafka_lab.notes import HighWatermarkSample

# A leader acts on a smaller ISR at the latest so long after the controller wrote it.
LEARNT = 2.0
# replica.lag.time.max.ms of the laboratory, and until its leader appends again.
LAG = 6.0


@dataclass(frozen=True)
class Commitment:
    """Since when a record is known to be committed, by what, and whether the evidence shows it."""

    at: float
    by: str
    in_evidence: bool


@dataclass
class Commits:
    """`sure` by record; `possible`: the laboratory cannot tell whether they were, or since when."""

    sure: dict[Held, Commitment]
    possible: set[Held]

    def add(self, held: Held, found: Commitment) -> None:
        known = self.sure.get(held)
        if known is None:
            self.sure[held] = found
            return
        self.sure[held] = Commitment(
            min(known.at, found.at),
            known.by if known.at <= found.at else found.by,
            known.in_evidence or found.in_evidence,
        )


@dataclass(frozen=True)
class Rules:
    """What of the settings decides when a lone leader commits; `at_most`: where they changed."""

    min_insync_replicas: int
    # KIP-966, from 3.7: the high watermark waits for so many.
    waits_for_min_isr: bool
    # Up to 3.5 (KAFKA-4485, KAFKA-15021) it also waits for whoever was caught up of late, dead or
    # not.
    waits_for_the_dead: bool = False
    at_most: int = 1

    @property
    def alone_after(self) -> float:
        """So many seconds after the others left the ISR its last member commits by itself."""
        return max(LEARNT, LAG) if self.waits_for_the_dead else LEARNT


def commits(
    terms: list[LeaderTerm],
    replicas: Replicas,
    acks: list[dict[str, Any]],
    high_watermarks: list[HighWatermarkSample],
    rules: Rules,
) -> Commits:
    found = Commits({}, set())
    lines = {term: replicas.line(term) for term in terms}
    for ack in acks:
        if ack["status"] == "acked" and ack["acks"] == "all":
            _acknowledged(found, lines, ack)
    for sample in high_watermarks:
        _below(found, lines, replicas, sample)
    for term, line in lines.items():
        _alone(found, term, line, replicas, rules)
        _everywhere(found, term, line, replicas)
        _up_to_the_highest(found, term, line, replicas)
    return found


def term_at(terms: list[LeaderTerm] | dict[LeaderTerm, Any], at: float) -> LeaderTerm | None:
    return next((term for term in terms if term.at <= at < term.until), None)


def copies(log: frozenset[Held], ack: dict[str, Any]) -> list[Held]:
    """The acknowledged record in a log; at the offset that was told, if one was."""
    named = _by_payload(log).get(ack["payload_id"], ())
    return [held for held in named if ack["offset"] in (None, held.offset)]


@lru_cache(maxsize=256)
def _by_payload(log: frozenset[Held]) -> dict[str, list[Held]]:
    """A log's records by payload id: some hold tens of thousands, each asked for once."""
    found: dict[str, list[Held]] = {}
    for held in log:
        found.setdefault(held.payload_id, []).append(held)
    return found


def _acknowledged(
    found: Commits, lines: dict[LeaderTerm, frozenset[Held]], ack: dict[str, Any]
) -> None:
    """Sure only where the term lasted until the answer was read."""
    told, sent = seconds_of(ack["ts"]), seconds_of(ack.get("sent_ts", ack["ts"]))
    for term, line in lines.items():
        if term.leader != ack["broker"]:
            continue
        for held in copies(line, ack):
            # Not at the leader's first attempt, which may have been in an earlier term of its.
            if held.leader_epoch is not None and held.leader_epoch > term.leader_epoch:
                continue
            if term.at <= told < term.until:
                found.add(held, Commitment(told, "acknowledged at acks=all", True))
            elif sent < term.until <= told:
                found.possible.add(held)


def _below(
    found: Commits,
    lines: dict[LeaderTerm, frozenset[Held]],
    replicas: Replicas,
    sample: HighWatermarkSample,
) -> None:
    """Records under this high watermark around its writing, and in the line of a valid leader."""
    before, after = replicas.around(sample.broker, sample.written_at)
    by = f"below {sample.high_watermark}, high watermark of {sample.broker}"
    now = term_at(lines, sample.written_at)
    for held in before | after:
        if held.offset >= sample.high_watermark:
            continue
        if held not in before or held not in after:
            # Written, or gone, about then: another may have stood there.
            if now is not None and held in lines[now]:
                found.possible.add(held)
        elif now is not None and held in lines[now]:
            found.add(held, Commitment(sample.written_at, by, sample.in_logs))
        elif any(held in line for term, line in lines.items() if term.at <= sample.written_at):
            # Whether it was reached before the leader was deposed, or after, is not known.
            found.possible.add(held)


def _alone(
    found: Commits, term: LeaderTerm, line: frozenset[Held], replicas: Replicas, rules: Rules
) -> None:
    """A lone leader commits what it writes, and with it what stands before."""
    if rules.waits_for_min_isr and rules.min_insync_replicas > 1:
        return
    times = [*(change.at for change in term.changes), term.until]
    for change, until in zip(term.changes, times[1:], strict=True):
        if change.isr != (term.leader,):
            continue
        known = replicas.at(term.leader, change.at + rules.alone_after)
        for at, log in replicas.seen(term.leader, change.at, until - SOON):
            written = [held.offset for held in log - known]
            waits = (
                at <= change.at + rules.alone_after
                or (rules.waits_for_min_isr and rules.at_most > 1)
                or _is_fetched_from(replicas, term, at)
            )
            if waits or not written:
                found.possible |= line & log
                continue
            highest = max(written)
            for held in line & log:
                if held.offset <= highest:
                    found.add(held, Commitment(at, "written by a leader alone in the ISR", True))


def _is_fetched_from(replicas: Replicas, term: LeaderTerm, at: float) -> bool:
    """Whether another replica got something new of late: of one that is caught up and may join the
    ISR the high watermark waits, too, even if it has stopped fetching since."""
    begins = at - LAG
    return any(
        replicas.held_within(broker, begins, at + SOON) - replicas.at(broker, begins)
        for broker in replicas.brokers
        if broker != term.leader
    )


def _everywhere(
    found: Commits, term: LeaderTerm, line: frozenset[Held], replicas: Replicas
) -> None:
    """On every member of the ISR at once: committed as soon as the leader hears of it."""
    moments = [change.at for change in term.changes]
    for broker in term.changes[0].isr:
        moments += [at for at, _ in replicas.seen(broker, term.at, term.until)]
    moments.append(term.until)
    for at in moments:
        isr = term.isr_at(at)
        if isr:
            shared = frozenset.intersection(
                *(frozenset.union(*replicas.around(broker, at)) for broker in {*isr, term.leader})
            )
            found.possible |= line & shared


def _up_to_the_highest(
    found: Commits, term: LeaderTerm, line: frozenset[Held], replicas: Replicas
) -> None:
    """What stands before a committed record in one log is committed with it; a leader that lost its
    disk and leads on in its term has another."""
    for log in _logs_within(term, replicas):
        above: Commitment | None = None
        for held in sorted(line & log, key=lambda one: -one.offset):
            own = found.sure.get(held)
            if above is not None and (own is None or own.at > above.at):
                found.add(held, above)
            elif own is not None and term.at <= own.at < term.until:
                above = own


def _logs_within(term: LeaderTerm, replicas: Replicas) -> list[frozenset[Held]]:
    """The leader's log in the term, as it was before each time that it lost anything."""
    before, after = replicas.around(term.leader, term.at, term.until)
    seen = [log for _, log in replicas.seen(term.leader, term.at, term.until)]
    logs = [before & after, *seen]
    return [log for log, later in pairwise(logs) if not log <= later] + logs[-1:]
