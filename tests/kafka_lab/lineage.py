"""What every replica held at any moment, and which of it belonged to the valid leader's line."""

from bisect import bisect_left, bisect_right
from functools import lru_cache

from tests.kafka_lab.history import LeaderStart, LeaderTerm
from tests.kafka_lab.logs_on_disk import Held, records
from tests.kafka_lab.notes import LogSample

# The sampler looks ten times a second, and later on a busy machine.
SOON = 0.4


@lru_cache(maxsize=20_000)
def held_in(batches: tuple[bytes, ...]) -> frozenset[Held]:
    return frozenset(held for batch in batches for held in records(batch))


@lru_cache(maxsize=1_000)
def payload_ids(log: frozenset[Held]) -> frozenset[str]:
    """The names of a log's records."""
    return frozenset(held.payload_id for held in log)


class Replicas:
    """Samples of one partition by broker; a sample holds until the next one of that broker."""

    def __init__(self, samples: list[LogSample]) -> None:
        self._samples: dict[int, list[LogSample]] = {}
        for sample in sorted(samples, key=lambda one: one.at):
            self._samples.setdefault(sample.broker, []).append(sample)
        self._times = {broker: [one.at for one in taken] for broker, taken in self._samples.items()}
        self._within: dict[tuple[int, float, float], frozenset[Held]] = {}
        self._lines: dict[LeaderTerm, frozenset[Held]] = {}
        self._first: dict[int, dict[Held, float]] = {}

    @property
    def brokers(self) -> list[int]:
        return sorted(self._samples)

    def at(self, broker: int, at: float) -> frozenset[Held]:
        """As last seen up to that moment."""
        place = bisect_right(self._times.get(broker, []), at)
        return held_in(self._samples[broker][place - 1].batches) if place else frozenset()

    def next_after(self, broker: int, at: float) -> frozenset[Held] | None:
        """As seen first after that moment, however late; None where nobody looked."""
        place = bisect_right(self._times.get(broker, []), at)
        taken = self._samples.get(broker, [])
        return held_in(taken[place].batches) if place < len(taken) else None

    def seen(self, broker: int, begins: float, ends: float) -> list[tuple[float, frozenset[Held]]]:
        """Samples within, with their times."""
        times = self._times.get(broker, [])
        taken = self._samples.get(broker, [])[bisect_left(times, begins) : bisect_left(times, ends)]
        return [(one.at, held_in(one.batches)) for one in taken]

    def around(
        self, broker: int, at: float, until: float = float("inf")
    ) -> tuple[frozenset[Held], frozenset[Held]]:
        """As seen just before and, if it changed soon and before `until`, just after."""
        before = self.at(broker, at)
        after = self.seen(broker, at, min(at + SOON, until))
        return before, (after[0][1] if after else before)

    def held_within(self, broker: int, begins: float, ends: float) -> frozenset[Held]:
        """All that any sample within shows; asked for once per record, so worked out once."""
        asked = (broker, begins, ends)
        if asked not in self._within:
            nothing: frozenset[Held] = frozenset()
            self._within[asked] = nothing.union(*(log for _, log in self.seen(*asked)))
        return self._within[asked]

    def first_seen(self, broker: int, held: Held) -> float | None:
        if broker not in self._first:
            first: dict[Held, float] = {}
            before: frozenset[Held] = frozenset()
            for at, log in self.seen(broker, 0.0, float("inf")):
                for new in log - before:
                    first.setdefault(new, at)
                before = log
            self._first[broker] = first
        return self._first[broker].get(held)

    def everywhere_first(self, held: Held) -> float:
        """When any replica was first seen with it."""
        seen = (self.first_seen(broker, held) for broker in self.brokers)
        return min((at for at in seen if at is not None), default=0.0)

    def everything(self) -> frozenset[Held]:
        return frozenset(
            held
            for taken in self._samples.values()
            for sample in taken
            for held in held_in(sample.batches)
        )

    def line(self, term: LeaderTerm) -> frozenset[Held]:
        """All that the leader of the term held within it."""
        if term not in self._lines:
            before, after = self.around(term.leader, term.at, term.until)
            seen = self.held_within(term.leader, term.at, term.until)
            self._lines[term] = seen | (before & after)
        return self._lines[term]


def reigns(term: LeaderTerm, starts: list[LeaderStart]) -> list[float]:
    """When the term's leader took up leadership: by the controller, then again by restarts."""
    again = [
        start.at
        for start in starts
        if start.broker == term.leader
        and term.at < start.at < term.until
        and start.leader_epoch in (None, term.leader_epoch)
    ]
    return [term.at, *again]


def first_start(term: LeaderTerm, starts: list[LeaderStart]) -> float:
    """When the leader first acted on the controller's word; as that was given, if it never did."""
    return reigns(term, starts)[:2][-1]


def took_up(term: LeaderTerm, starts: list[LeaderStart]) -> bool:
    """Whether the leader that the controller named ever led: a frozen or dead one does not."""
    return any(
        start.broker == term.leader
        and start.leader_epoch in (None, term.leader_epoch)
        and term.at - SOON < start.at < term.until + SOON
        for start in starts
    )
