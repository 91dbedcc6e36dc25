"""In which leader epoch a record known by offset alone was acknowledged, by declared clocks.

The clocks of brokers, controllers and clients decide nothing, unless the user says by how much they
differ at most. A record was written between its sending and its answer; where its client does not
say when it sent it, an answer's way is in the bound as well. What a leader answered for was in
its log, and from its log end at its start on it had written it itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.partition_evidence import PartitionEvidence

# After one of these lines of its own a broker has stopped leading; a re-election is no end.
_ENDS = ("became_follower", "process_started", "stopped_cleanly")


class ClocksDisagree(ValueError):
    """The evidence contradicts the declared bound; the message says where."""


@dataclass(frozen=True, slots=True)
class Term:
    """A leader epoch by clocks, ms. begin: by the controller's clock; end: by the leader's, None
    where its lines tell of none. start_offset: its log end as it began. end_offset: its log end
    when it followed the next leader; None where it may have lost something before."""

    leader_epoch: int
    leader: int
    begin: int
    end: int | None
    start_offset: int | None
    end_offset: int | None


@dataclass(slots=True)
class EpochsByClock:
    """The leader epochs of a partition, with the bound in ms; without terms nothing is told.

    reached: the last moment that the evidence tells of. told: the line by (epoch, offset).
    """

    bound: int
    terms: list[Term]
    reached: int
    told: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)

    def epoch_of(self, a: Acknowledgement) -> int | None:
        """The epoch in which the record at an acknowledgement's offset was written, if it is sure.

        Raises ClocksDisagree.
        """
        if not self.terms or a.ts is None or a.offset is None or a.ts - self.bound > self.reached:
            return None
        terms = self._of_who_answered(a)
        possible = [r for r in terms if self._is_possible(r, a, a.ts)]
        if not possible:
            who = "no broker" if terms is self.terms else f"broker {a.broker}, who answered, never"
            raise self._refused(a, f"when {who} led")
        term = [r for r in terms if a.ts + self.bound >= r.begin][-1]
        if possible != [term] or term.start_offset is None or a.offset < term.start_offset:
            return None
        written_in = term.leader_epoch
        if term.end_offset is not None and a.offset >= term.end_offset:
            end = term.end_offset
            raise self._refused(
                a, f"in leader epoch {written_in}, whose leader's log ended at {end}"
            )
        if self.told.setdefault((written_in, a.offset), (a.path, a.line)) != (a.path, a.line):
            path, line = self.told[written_in, a.offset]
            raise self._refused(
                a, f"in leader epoch {written_in}, in which {path} line {line} was, too"
            )
        return written_in

    def _of_who_answered(self, a: Acknowledgement) -> list[Term]:
        """The terms in one of which the record was written; at acks=1 by whoever answered."""
        own = [r for r in self.terms if r.leader == a.broker]
        return own if own and a.acks == "1" else self.terms

    def hold(self, a: Acknowledgement, leader_epoch: int | None) -> None:
        """Holds the bound against a record whose epoch a log shows. Raises ClocksDisagree."""
        mine = [r for r in self.terms if r.leader_epoch == leader_epoch]
        if mine and a.ts is not None and a.ts + self.bound < mine[0].begin:
            why = f"before its leader epoch, {leader_epoch}, began, at {mine[0].begin}"
            raise self._refused(a, why)

    def _is_possible(self, term: Term, a: Acknowledgement, ts: int) -> bool:
        sent = ts if a.sent is None else min(a.sent, ts)
        is_over = term.end is not None and term.end + self.bound < sent
        return ts + self.bound >= term.begin and not is_over

    def _refused(self, a: Acknowledgement, why: str) -> ClocksDisagree:
        return ClocksDisagree(
            f"--clock-bound {self.bound}: {a.path} line {a.line}: offset {a.offset} was told at "
            f"{a.ts}, {why}: the clocks differ by more; declare a larger bound, or none"
        )


def epochs_by_clock(evidence: PartitionEvidence) -> EpochsByClock | None:
    """What the clocks tell of a joined partition; None without a declared bound.

    Raises ClocksDisagree where a leader began before the controller elected it.
    """
    if evidence.clock_bound is None:
        return None
    terms = list(_terms(evidence)) if evidence.clocks_compare and _is_whole(evidence) else []
    for term in terms:
        for line in _started(evidence):
            early = line.fields["leader_epoch"] == term.leader_epoch and line.at is not None
            if early and (line.at or 0) + evidence.clock_bound < term.begin:
                raise ClocksDisagree(
                    f"--clock-bound {evidence.clock_bound}: {line.path} line {line.line}: leader "
                    f"epoch {term.leader_epoch} begins at {line.at}, before its election at "
                    f"{term.begin}: the clocks differ by more; declare a larger bound, or none"
                )
    every = [f.at for lines in evidence.lines.values() for f in lines if f.at is not None]
    return EpochsByClock(evidence.clock_bound, terms, max(every, default=0))


def _is_whole(evidence: PartitionEvidence) -> bool:
    """Whether every leader epoch is known with its time, and none can have begun twice."""
    known = {r.fact.leader_epoch: r.at for r in reversed(evidence.recorded)}
    started = [(f.broker, f.fields["leader_epoch"]) for f in _started(evidence)]
    if sorted(known) != list(range(len(known))) or None in known.values():
        return False
    if evidence.later_history is not None or any(e not in known for _, e in started):
        return False
    led = {r.fact.leader for r in evidence.recorded} - {None}
    return evidence.described.controller == "kraft" or (
        len(started) == len(set(started)) and led <= evidence.lines.keys()
    )


def _terms(evidence: PartitionEvidence) -> Iterator[Term]:
    """Each epoch that a broker led, in order."""
    starts: dict[int, int] = {0: 0}
    for copy in evidence.copies:
        for leader_epoch, start in copy.directory.epoch_entries or ():
            starts[leader_epoch] = min(start, starts.get(leader_epoch, start))
    for line in _started(evidence):
        offset = line.fields.get("log_end_offset")
        if isinstance(offset, int):
            starts[line.fields["leader_epoch"]] = offset
    first = {r.fact.leader_epoch: r for r in reversed(evidence.recorded)}
    for leader_epoch, told in sorted(first.items()):
        if told.fact.leader is not None and told.at is not None:
            lines = evidence.lines.get(told.fact.leader, [])
            end, end_offset = _end(lines, leader_epoch)
            began = starts.get(leader_epoch)
            yield Term(leader_epoch, told.fact.leader, told.at, end, began, end_offset)


def _end(lines: list[LogLineFact], leader_epoch: int) -> tuple[int | None, int | None]:
    """When a leader's own lines end its leadership, and its log end when it followed another."""
    led, end, kept = False, None, True
    for line in lines:
        begun = line.fields.get("leader_epoch")
        if line.kind == "became_leader":
            if led and end is not None:
                break
            led = led or begun == leader_epoch
        elif led and line.kind in _ENDS:
            kept = kept and (line.kind != "process_started" or end is not None)
            end = line.at if end is None else end
            if line.kind == "became_follower":
                offset = line.fields.get("log_end_offset")
                return end, offset if kept and isinstance(offset, int) else None
    return end, None


def _started(evidence: PartitionEvidence) -> Iterator[LogLineFact]:
    for lines in evidence.lines.values():
        for line in lines:
            if line.kind == "became_leader" and isinstance(line.fields.get("leader_epoch"), int):
                yield line
