"""Traces with one step changed, and whether some lawful run of the machine explains each of them.

A schedule is run; one observed quantity of its trace is changed by one, moved by one step, or left
out. What each broker and the controller saw, each in its own order, is compared with what they see
in every schedule near the first one: a command less, two commands swapped, one fetch more, or sent
in another way. The machine runs them, which the naive model checks (schedules.py): where one gives
the very same lines, timing explains the change, and no finding may be made of it.
`python -m tests.protocol.planted N [SEED]` prints how many others are found.

How the set is defined: high watermarks by one, moved before their append, or right after an append
that an ISR member has not fetched; cuts by one; the end of a follower's append by one; the epoch of
an append by one; the last epoch entry by one; ISR joins of brokers that never fetched; fetches left
out. Left out of the set itself, since other lawful schedules than those near explain them: what no
later line of the same broker could contradict (`_is_told_on`), and fetches that are repeated, that
one which waits explains, or that are a follower's last (`_is_repeated`).
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from replication.machine.scenario_check import events_of
from replication.protocol.folding.conformance.leaders import counts
from replication.protocol.folding.fold import Rejected, apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry
from replication.protocol.ground.versions import behaviour
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import event
from tests.protocol.schedules import Setting, allowed, new_pair, next_command, setting
from tests.protocol.stories import begun, tell

Lines = dict[Any, tuple[ev.Fact, ...]]
FETCHES = ("", " response=lost", " max=1")
# A step may contradict one of these as well, or first.
FOUND_BY = (
    "version_conformance",
    "high_watermark_within_log",
    "leader_high_watermark_monotonic",
    "isr_within_assignment",
    "leader_in_isr",
)


@dataclass(frozen=True)
class Planted:
    """One changed trace. what: the quantity; rules: those that may name it."""

    what: str
    facts: tuple[ev.Fact, ...]
    rules: tuple[str, ...]


def schedule(seed: int, length: int = 16) -> tuple[Setting, list[str]]:
    """Commands that make sense, under random settings."""
    chance = random.Random(seed)
    under = setting(chance)
    story, naive = new_pair(under)
    lines: list[str] = []
    while len(lines) < length:
        line = next_command(chance, naive, len(lines))
        if allowed(naive, line) and not line.startswith("delete_records"):
            lines.append(line)
            tell(story, line)
            naive.do(line)
    for n in range(3):
        # What was done last is told of by what comes after it.
        names = [naive.leader] if naive.leader and naive.replicas[naive.leader].running else []
        tail = [f"produce {name} tail{n}" for name in names]
        tail += [f"fetch {r.name}" for r in naive.replicas.values() if r.role == "follower"] * 2
        for line in tail:
            lines.append(line)
            tell(story, line)
            naive.do(line)
    return under, lines


def trace(under: Setting, lines: list[str]) -> tuple[ev.Fact, ...]:
    """What a schedule shows, with a copy of each running broker's epoch cache at its end."""
    story = begun(under.given)
    tell(story, *lines)
    world = story.world
    facts = printed([e.fact for e in events_of(world)])
    for broker in world.brokers.values():
        log = broker.log
        if broker.running and broker.behaviour.has("leader_epoch_in_record_batches"):
            copy = ev.ReplicaLogObserved(
                broker.replica, log.log_start_offset, log.log_end_offset, tuple(log.spans),
                epoch_entries=broker.epoch_entries, stopped=False,
            )  # fmt: skip
            facts.append(copy)
    return (*facts, ev.InputEnded())


def printed(facts: list[ev.Fact]) -> list[ev.Fact]:
    """What brokers print of it: fetches that count, one append a response, no responses."""
    state = new_state("", "planted", "", 0)
    result: list[ev.Fact] = []
    for n, fact in enumerate(facts):
        counted = isinstance(fact, ev.FetchRequested) and counts(state, fact)
        apply(state, event(n, fact, None, "traced"))
        last = result[-1] if result else None
        if isinstance(fact, ev.FetchRequested):
            if counted:
                result.append(ev.FetchRequested(fact.replica, fact.leader, fact.fetch_offset))
        elif isinstance(fact, ev.FollowerAppended):
            goes_on = isinstance(last, ev.FollowerAppended) and last.replica == fact.replica
            first = last.first_offset if goes_on else fact.first_offset  # type: ignore[union-attr]
            if goes_on:
                result.pop()
            result.append(ev.FollowerAppended(fact.replica, first, fact.end_offset))
        elif not isinstance(fact, ev.FetchAnswered):
            result.append(fact)
    return result


def lines_of(facts: tuple[ev.Fact, ...]) -> frozenset[tuple[Any, tuple[ev.Fact, ...]]]:
    """What each broker and the controller saw, in its own order."""
    streams: dict[Any, list[ev.Fact]] = {}
    for fact in facts:
        stream = streams.setdefault(_stream(fact), [])
        if isinstance(fact, ev.FetchRequested):
            # A fetch that waits for records, and two of which the first waited in vain, are alike.
            if _fetched_last(stream, fact.replica) == fact.fetch_offset:
                continue
            # The line of a fetch comes after that of the high watermark it moves, or before.
            last = stream[-1] if stream else None
            if isinstance(last, ev.HighWatermarkAdvanced):
                stream.insert(len(stream) - 1, fact)
                continue
        stream.append(fact)
    return frozenset((k, tuple(v)) for k, v in streams.items())


def _fetched_last(stream: list[ev.Fact], replica: int) -> int | None:
    for fact in reversed(stream):
        if isinstance(fact, ev.BecameLeader):
            return None
        if isinstance(fact, ev.FetchRequested) and fact.replica == replica:
            return fact.fetch_offset
    return None


def _stream(fact: ev.Fact) -> Any:
    if isinstance(fact, ev.LeadershipRecorded):
        return "controller"
    if isinstance(fact, ev.FetchRequested):
        return fact.leader
    return getattr(fact, "replica", "clients")


def near(under: Setting, lines: list[str]) -> Iterator[list[str]]:
    """The schedules one edit away."""
    for n in range(len(lines)):
        yield lines[:n] + lines[n + 1 :]
        if n:
            yield [*lines[: n - 1], lines[n], lines[n - 1], *lines[n + 1 :]]
        if lines[n].startswith("fetch"):
            name = lines[n].split()[1]
            for how in FETCHES:
                yield [*lines[:n], f"fetch {name}{how}", *lines[n + 1 :]]
    for n in range(len(lines) + 1):
        for name in "ABC":
            for how in FETCHES:
                yield [*lines[:n], f"fetch {name}{how}", *lines[n:]]


def planted(facts: tuple[ev.Fact, ...]) -> Iterator[Planted]:
    """Every trace that differs from this one in one step."""
    for n, fact in enumerate(facts):
        for what, other, rules in _changed(fact):
            if _is_told_on(facts, n, fact, other):
                yield Planted(what, (*facts[:n], other, *facts[n + 1 :]), rules)
        if isinstance(fact, ev.FetchRequested) and not _is_repeated(facts, n, fact):
            skipped = facts[:n] + facts[n + 1 :]
            yield Planted("fetch skipped", skipped, ("fetch_admission", *MARK))
        if isinstance(fact, ev.LeaderAppended):
            yield from _unwaited(facts, n, fact)
        if isinstance(fact, ev.HighWatermarkAdvanced):
            yield from _moved(facts, n, fact)
        if isinstance(fact, ev.LeadershipRecorded) and fact.isr is not None:
            yield from _joined(facts, n, fact)


def _is_told_on(facts: tuple[ev.Fact, ...], n: int, fact: ev.Fact, other: ev.Fact) -> bool:
    """Whether later lines must contradict the change.

    A high watermark told as it was before is one not told yet, which a thread that prints later
    explains; the end of a log that is not written on may have been lost.
    """
    if isinstance(other, ev.HighWatermarkAdvanced):
        before = [
            f.high_watermark
            for f in facts[:n]
            if isinstance(f, (ev.HighWatermarkAdvanced, ev.ReplicaStarted, ev.BecameLeader))
            and f.replica == other.replica
        ]
        roles = [
            f
            for f in facts[:n]
            if isinstance(f, (ev.BecameLeader, ev.BecameFollower)) and f.replica == other.replica
        ]
        leads = bool(roles) and isinstance(roles[-1], ev.BecameLeader)
        marks = {
            f.high_watermark
            for f in facts
            if isinstance(f, ev.HighWatermarkAdvanced) and f.replica != other.replica
        }
        # When a follower hears of a high watermark that its leader has is timing.
        told = other.high_watermark in marks and not leads
        return not told and (not before or before[-1] != other.high_watermark)
    if isinstance(fact, ev.FollowerAppended):
        after = [f for f in facts[n + 1 :] if _stream(f) == fact.replica]
        after = [f for f in after if not isinstance(f, ev.HighWatermarkAdvanced)]
        return bool(after) and isinstance(after[0], ev.FollowerAppended)
    return True


MARK = ("high_watermark_of_leader", "high_watermark_of_follower")
CUT = (
    "truncate_to_high_watermark", "truncate_to_leader_end_offset", "truncate_by_common_epoch",
    "truncate_on_fetch", "fetch_admission", "append",
)  # fmt: skip


def _changed(fact: ev.Fact) -> Iterator[tuple[str, ev.Fact, tuple[str, ...]]]:
    for by in (-1, 1):
        if isinstance(fact, ev.HighWatermarkAdvanced) and fact.high_watermark + by >= 0:
            value = fact.high_watermark + by
            yield "high watermark by one", replace(fact, high_watermark=value), MARK
        if isinstance(fact, ev.Truncated) and (fact.to_offset or 0) + by >= 0:
            yield "truncation by one", replace(fact, to_offset=(fact.to_offset or 0) + by), CUT
        if isinstance(fact, ev.FollowerAppended) and fact.end_offset + by > fact.first_offset:
            other = replace(fact, end_offset=fact.end_offset + by)
            yield "log end after a fetch by one", other, ("append", "fetch_admission", "assign")
        if isinstance(fact, ev.LeaderAppended) and (fact.leader_epoch or 0) + by >= 0:
            yield (
                "epoch of an append by one",
                replace(fact, leader_epoch=(fact.leader_epoch or 0) + by),
                ("assign",),
            )
        if isinstance(fact, ev.ReplicaLogObserved) and fact.epoch_entries and fact.stopped is False:
            last = fact.epoch_entries[-1]
            # Past the end of its log: of what was written after the log had been copied.
            if 0 <= last.start_offset + by <= fact.log_end_offset:
                entry = EpochEntry(last.leader_epoch, last.start_offset + by)
                entries = (*fact.epoch_entries[:-1], entry)
                yield "epoch entry by one", replace(fact, epoch_entries=entries), ("assign",)


def _is_repeated(facts: tuple[ev.Fact, ...], n: int, fact: ev.FetchRequested) -> bool:
    """Whether the follower fetches there again next; or not again: then its line may be to come."""
    after = [
        f for f in facts[n + 1 :] if isinstance(f, ev.FetchRequested) and f.replica == fact.replica
    ]
    if not after or after[0].fetch_offset == fact.fetch_offset:
        return True
    # Unfenced, one that waits for records is answered whatever epoch its leader leads in by then.
    before = [
        f
        for f in facts[:n]
        if isinstance(f, ev.FetchRequested) and (f.replica, f.leader) == (fact.replica, fact.leader)
    ]
    waited = bool(before) and before[-1].fetch_offset == fact.fetch_offset
    return waited and not _is_fenced(facts)


def _is_fenced(facts: tuple[ev.Fact, ...]) -> bool:
    told = next(f.kafka_version for f in facts if isinstance(f, ev.PartitionDescribed))
    return told is None or behaviour(told).has("fetch_carries_leader_epoch")


def _moved(facts: tuple[ev.Fact, ...], n: int, fact: ev.HighWatermarkAdvanced) -> Iterator[Planted]:
    """A high watermark before the append of its own broker that it needs."""
    for m in range(n - 1, -1, -1):
        other = facts[m]
        if not isinstance(other, (ev.LeaderAppended, ev.FollowerAppended)):
            continue
        if other.replica == fact.replica and other.first_offset < fact.high_watermark:
            early = (*facts[:m], fact, *facts[m:n], *facts[n + 1 :])
            yield Planted("high watermark before its append", early, MARK)
            return


def _unwaited(facts: tuple[ev.Fact, ...], n: int, fact: ev.LeaderAppended) -> Iterator[Planted]:
    """A high watermark right after an append, though an ISR member fetches below it next."""
    before = [f for f in facts[:n] if isinstance(f, ev.LeadershipRecorded)]
    rest = [f for f in facts[n + 1 :] if isinstance(f, (ev.FetchRequested, ev.LeadershipRecorded))]
    told = rest[0] if rest else None
    if (
        not before
        or before[-1].leader != fact.replica
        or before[-1].leader_epoch != fact.leader_epoch
    ):
        return
    isrs = [set(f.isr or ()) for f in facts if _is_of(f, fact.leader_epoch)]
    members = set.intersection(*isrs) if isrs else set()
    if not isinstance(told, ev.FetchRequested) or told.leader != fact.replica:
        return
    # That it joins after this step is timing: the controller's lines have another order.
    if told.replica in members and told.fetch_offset < fact.end_offset:
        mark = ev.HighWatermarkAdvanced(fact.replica, fact.end_offset)
        what = "high watermark without waiting"
        yield Planted(what, (*facts[: n + 1], mark, *facts[n + 1 :]), MARK)


def _is_of(fact: ev.Fact, leader_epoch: int | None) -> bool:
    return isinstance(fact, ev.LeadershipRecorded) and fact.leader_epoch == leader_epoch


def _joined(facts: tuple[ev.Fact, ...], n: int, fact: ev.LeadershipRecorded) -> Iterator[Planted]:
    """A registration after this one, in the same leader epoch, by which another replica joins."""
    following = [f for f in facts[n + 1 :] if isinstance(f, ev.LeadershipRecorded)]
    last = not following or following[0].leader_epoch > fact.leader_epoch
    led = ev.BecameLeader, (fact.leader, fact.leader_epoch)
    starts = [f for f in facts if isinstance(f, led[0]) and (f.replica, f.leader_epoch) == led[1]]
    if fact.leader is None or not last or len(starts) != 1:
        return
    asked = {
        f.replica for f in facts if isinstance(f, ev.FetchRequested) and f.leader == fact.leader
    }
    for replica in sorted({1, 2, 3} - set(fact.isr or ()) - asked):
        joined = replace(
            fact, isr=(*(fact.isr or ()), replica), election_kind=None,
            partition_epoch=(fact.partition_epoch or 0) + 1,
        )  # fmt: skip
        yield Planted("ISR join", (*facts[: n + 1], joined, *facts[n + 1 :]), ("isr_expand",))


def judged(facts: tuple[ev.Fact, ...]) -> dict[str, str]:
    """The reasons of the invariants that the trace violates."""
    state = new_state("", "planted", "", 0)
    for n, fact in enumerate(facts):
        source = ev.Source("server.log", n)
        event = ev.Event(str(n), "t", "", "planted", "", 0, n, fact, None, "traced", source)
        try:
            apply(state, event)
        except Rejected:
            continue
    verdicts = answer(state).verdicts
    return {v["invariant"]: v["reason"] for v in verdicts if v["verdict"] == "VIOLATED"}


@dataclass
class Score:
    """How many changed traces there were by what was changed, and what became of them."""

    explained: Counter[str]
    found: Counter[str]
    unfound: Counter[str]
    wrong: list[str]
    missed: list[str]


def score(seeds: range) -> Score:
    """Plants in the schedules of these seeds."""
    total = Score(Counter(), Counter(), Counter(), [], [])
    for seed in seeds:
        under, lines = schedule(seed)
        facts = trace(under, lines)
        before = judged(facts)
        lawful = {lines_of(facts)} | {lines_of(trace(under, x)) for x in near(under, lines)}
        for change in planted(facts):
            after = {k: v for k, v in judged(change.facts).items() if before.get(k) != v}
            found = [f"{k}: {after[k]}" for k in FOUND_BY if k in after]
            found = [f for f in found if any(rule in f for rule in (*change.rules, *FOUND_BY[1:]))]
            if lines_of(change.facts) in lawful:
                total.explained[change.what] += 1
                if "version_conformance" in after:
                    total.wrong.append(f"seed {seed}, {change.what}: {found}")
            elif found:
                total.found[change.what] += 1
            else:
                total.unfound[change.what] += 1
                place = next(
                    (
                        n
                        for n, (a, b) in enumerate(zip(facts, change.facts, strict=False))
                        if a != b
                    ),
                    0,
                )
                total.missed.append(
                    f"seed {seed} {under.version}, {change.what} at {place}: "
                    f"{facts[place]} -> {change.facts[place]}"
                )
    return total


def main() -> int:
    """Prints the score; exit status 1 below 95 % or with a finding that timing explains."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total = score(range(first, first + count))
    for what in sorted({*total.explained, *total.found, *total.unfound}):
        print(
            f"{what}: {total.found[what]} found, {total.unfound[what]} not, "
            f"{total.explained[what]} explained by timing"
        )
    for line in total.wrong[:20] + total.missed[:60]:
        print(line)
    found, unfound = sum(total.found.values()), sum(total.unfound.values())
    print(f"{found} of {found + unfound}, {len(total.wrong)} wrong")
    return int(found < 0.95 * (found + unfound) or bool(total.wrong))


if __name__ == "__main__":
    sys.exit(main())
