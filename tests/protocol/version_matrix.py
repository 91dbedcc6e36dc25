"""Traced evidence judged by the rules of every release: alike, or told apart by a named rule.

Two releases behave alike on a trace where every flag that is asked for while it is held against the
rules (`Behaviour.has`) is the same in both: that is the flags' table, read by the rules themselves.
Then the verdict is the same. Where a flag differs, either a step refutes the other release and the
finding names the rule, or no step depends on the difference.

`python -m tests.protocol.version_matrix FOLDER..` prints it for each folder of evidence, or of runs
with a folder `evidence`; exit status 1 where evidence refutes its own release, where releases that
are alike are judged differently, or where a finding names no rule.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from replication.evidence.importer import import_evidence
from replication.protocol.folding.fold import Rejected, new_state
from replication.protocol.folding.sequencing import in_order
from replication.protocol.folding.steady import fold_event
from replication.protocol.ground import topic_partition
from replication.protocol.ground.boundaries import BOUNDARIES
from replication.protocol.ground.events import Event, PartitionDescribed, ReplicaStarted
from replication.protocol.ground.versions import (
    KNOWN_BRANCHES,
    Behaviour,
    behaviour,
    known_behaviour,
    parse_version,
)
from replication.protocol.judgement.invariants import version_conformance
from replication.protocol.judgement.view import view_of
from replication.protocol.rules import RULES

ORDER = ("VIOLATED", "HOLDS", "UNKNOWN")
# What a finding may name: a rule, or a step of the log itself.
NAMES = (*[rule.__name__ for rule in RULES], "assign", "append")


class Asked(frozenset[str]):
    """The flags of a release that writes down which of all flags it is asked for."""

    asked: set[str]

    def __contains__(self, flag: object) -> bool:
        self.asked.add(str(flag))
        return super().__contains__(flag)


@dataclass(frozen=True)
class Judged:
    """What version_conformance says under one release (None: the evidence's own).

    asked: the flags that it rests on. foretold: how many changes were. rule: whom a finding names.
    """

    release: str | None
    verdict: str
    reason: str
    asked: frozenset[str]
    foretold: int

    @property
    def rule(self) -> str | None:
        """The rule that the first finding names; None without a finding."""
        if self.verdict != "VIOLATED":
            return None
        return next((n for n in NAMES if f"{n} gives" in self.reason), "")


@cache
def releases() -> tuple[str, ...]:
    """The first release of every branch, and each in which some flag turns on or off."""
    firsts = {".".join(map(str, (*branch, 0))) for branch in KNOWN_BRANCHES}
    turns = {r for b in BOUNDARIES for r in (*b.first_releases, *b.ended_by)}
    return tuple(sorted(firsts | turns, key=parse_version))


def events_of(folder: Path) -> list[Event]:
    """The evidence of a folder, or of the run that it belongs to."""
    inside = folder / "evidence"
    return list(import_evidence([inside if inside.is_dir() else folder]).events())


def own_releases(events: list[Event]) -> set[str]:
    """The releases that the evidence names."""
    told = [getattr(e.fact, "kafka_version", None) for e in events]
    return {release for release in told if release is not None}


def judged(events: list[Event], release: str | None) -> Judged:
    """The worst verdict of the partitions under a release."""
    asked: set[str] = set()

    def asking(version: str | None, inter_broker: str | None) -> Behaviour | None:
        known = known_behaviour(version, inter_broker)
        return None if known is None else replace(known, flags=_noted(known.flags, asked))

    # Only here: conformance asks the state, which asks this.
    before = topic_partition.known_behaviour
    topic_partition.known_behaviour = cache(asking)  # type: ignore[assignment]
    try:
        found = list(_verdicts([_under(e, release) for e in events]))
    finally:
        topic_partition.known_behaviour = before
    worst = min(found, key=lambda v: ORDER.index(v[0]))
    return Judged(release, worst[0], worst[1], frozenset(asked), sum(v[2] for v in found))


def _noted(flags: frozenset[str], asked: set[str]) -> Asked:
    noting = Asked(flags)
    noting.asked = asked
    return noting


def _under(event: Event, release: str | None) -> Event:
    """The event as `--kafka` gives it."""
    fact: Any = event.fact
    if release is not None and isinstance(fact, PartitionDescribed):
        told = replace(fact, kafka_version=release, inter_broker_version=None)
        return replace(event, fact=told)
    if release is not None and isinstance(fact, ReplicaStarted):
        return replace(event, fact=replace(fact, kafka_version=None))
    return event


def _verdicts(events: list[Event]) -> Iterator[tuple[str, str, int]]:
    """(verdict, reason, changes foretold) of each partition."""

    def identity(event: Event) -> tuple[str, str, str, int]:
        return (event.cluster_id, event.topic, event.topic_id, event.partition)

    for key, own in groupby(sorted(events, key=identity), identity):
        state = new_state(*key)
        for event in in_order(own).ready:
            try:
                fold_event(state, event)
            except Rejected:
                continue
        verdict = version_conformance.judge(view_of(state))
        yield verdict.verdict, verdict.reason, state.conformance.predicted


def alike(one: Judged, flags: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two releases with these flags behave alike on the trace that was judged."""
    return one.asked & flags == one.asked & other


def matrix(events: list[Event]) -> tuple[Judged, list[tuple[Judged, list[str]]]]:
    """The verdict under the own release, and under all others, those together that are alike."""
    groups: list[tuple[Judged, list[str]]] = []
    for release in releases():
        flags = behaviour(release).flags
        for one, members in groups:
            if alike(one, flags, behaviour(members[0]).flags):
                members.append(release)
                break
        else:
            groups.append((judged(events, release), [release]))
    return judged(events, None), groups


def contradictions(events: list[Event]) -> Iterator[str]:
    """What the matrix of a trace must not show; each in words."""
    own, groups = matrix(events)
    if own.verdict == "VIOLATED":
        yield f"refutes its own release: {own.reason}"
    named = sorted(own_releases(events))
    for one, members in groups:
        told = [r for r in named if alike(one, behaviour(r).flags, behaviour(members[0]).flags)]
        if len(named) == 1 and told and (one.verdict, one.foretold) != (own.verdict, own.foretold):
            yield f"{members[0]} is alike, and {one.verdict}: {one.reason}"
        again = judged(events, members[-1])
        if (again.verdict, again.rule, again.foretold) != (one.verdict, one.rule, one.foretold):
            yield f"{members[0]} and {members[-1]} are alike, and {again.verdict}: {again.reason}"
        if one.rule == "":
            yield f"no rule is named: {one.reason}"


def lines(events: list[Event]) -> Iterator[str]:
    """The matrix of a trace for people."""
    own, groups = matrix(events)
    named = sorted(own_releases(events))
    yield f"  own release ({', '.join(named)}): {own.verdict}, {own.foretold} changes foretold"
    mine = behaviour(named[0]).flags if len(named) == 1 else None
    for one, members in groups:
        span = f"{members[0]}" + (f" .. {members[-1]} ({len(members)})" if members[1:] else "")
        if mine is None or alike(one, mine, behaviour(members[0]).flags):
            yield f"  {span}: alike; {one.verdict}"
            continue
        other = behaviour(members[0]).flags
        differ = ", ".join(sorted(one.asked & (mine ^ other)))
        found = f"{one.rule}" if one.rule else f"no step tells them apart ({one.foretold} foretold)"
        yield f"  {span}: {one.verdict}, {found}; flags that differ: {differ}"


def main(folders: list[str]) -> int:
    """Prints the matrix of each folder; see the module."""
    wrong = 0
    for folder in folders:
        events = events_of(Path(folder))
        print(f"{folder}:", flush=True)
        for line in lines(events):
            print(line)
        for line in contradictions(events):
            wrong += 1
            print(f"  WRONG: {line}", flush=True)
    print(f"{len(folders)} traces under {len(releases())} releases, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
