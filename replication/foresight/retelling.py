"""An incident told again beside itself: as it was, and under other settings.

First the stories of the machine that fit the evidence are found. Each is then told again in pairs:
the first of a pair is that story, the second takes the same steps, fetch by fetch, as long as both
look alike; from where they part, what its brokers, clients and disks did stays as it was, and
elections, ISR and fetches are free.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from replication.foresight.script import (
    CannotTell,
    Registered,
    Script,
    Seen,
    Started,
    Stopped,
    TooManyStories,
    Write,
    had_ended,
    named,
)
from replication.foresight.script import (
    Telling as Step,
)
from replication.foresight.telling import (
    Change,
    Telling,
    World,
    back,
    begin,
    changed,
    fetched,
    started,
    stopped,
    time_passes,
    wrote,
)
from replication.protocol.ground.events import UNCLEAN_KINDS

FORCED = ("forced", "elect_unclean")
# These name whom to elect, whatever the rules would do.
BY_NAME = ("elect", "elect_unclean")
# From here on writes are numbered that nobody was answered for.
UNANSWERED = 1_000_000
BY_HIGH_WATERMARK = "truncate_to_high_watermark"
MOST_PAIRS = 2_000
MOST_FETCHES = 3_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A telling that fits the evidence, and the same otherwise. parted: at which step they part."""

    told: Telling
    otherwise: Telling
    parted: int | None = None

    def key(self) -> tuple[object, object, bool]:
        """What tells pairs apart."""
        return self.told.key(), self.otherwise.key(), self.parted is not None


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What is different. not_restarted: brokers that stay down once they are; not_forced: leader
    epochs whose unclean election nobody forces."""

    world: World
    not_restarted: frozenset[int] = frozenset()
    not_forced: frozenset[int] = frozenset()


class Retelling:
    """All pairs of an incident. Raises CannotTell where none fits, or too many do.

    otherwise: None: only the stories that fit, each beside itself. story: the only one that is
    followed, by what was done in it.
    """

    def __init__(
        self,
        script: Script,
        as_it_was: World,
        otherwise: Otherwise | None = None,
        story: tuple[str, ...] | None = None,
    ) -> None:
        self.script, self.world = script, as_it_was
        self.alone = otherwise is None
        self.otherwise = otherwise or Otherwise(as_it_was)
        self.story = story
        self.number = 0

    def pairs(self) -> list[Pair]:
        """Every pair at the end of the story, with all that can be fetched."""
        told = begin(self.script, self.world)
        other = told if self.alone else begin(self.script, self.otherwise.world)
        pairs = [Pair(told, other)]
        before: int | None = None
        for number, (step, at) in enumerate(self.script.steps):
            self.number = number
            pairs = self._after(pairs, step, at, before)
            before = max(at or 0, before or 0) or None
        ends = self.script.ends
        pairs = self._fit(self._with_fetches(pairs), lambda t: self._ends(t, ends), "the copies")
        return [self._healed(pair) for pair in pairs]

    def _after(
        self, pairs: list[Pair], step: Step, at: int | None, before: int | None
    ) -> list[Pair]:
        passed = (at - before) if at is not None and before is not None else 0
        pairs = [self._time(pair, passed) for pair in pairs]
        found: list[Pair] = []
        for pair in self._with_fetches(pairs):
            pair = self._caught_up(pair, step)
            found += [self._marked(p) for p in self._step(pair, step) if self._is_told(p.told)]
        kept = _distinct(self._least_lost(found, step))
        if not kept:
            raise CannotTell(
                f"no course of events by Kafka's rules comes to {named(step)} as the evidence has "
                "it: the evidence lacks a step before it, or the model of Kafka does"
            )
        return kept

    def _time(self, pair: Pair, passed: int) -> Pair:
        return replace(
            pair,
            told=time_passes(pair.told, passed),
            otherwise=time_passes(pair.otherwise, passed),
        )

    def _with_fetches(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs after any fetches, none among them."""
        found = {pair.key(): pair for pair in pairs}
        waiting = list(found.values())
        while waiting:
            pair = waiting.pop()
            for then in self._fetches(pair):
                key = then.key()
                if key not in found:
                    found[key] = then
                    waiting.append(then)
                    if len(found) > MOST_FETCHES + len(pairs):
                        raise TooManyStories()
        return list(found.values())

    def _fetches(self, pair: Pair) -> Iterator[Pair]:
        extra = [r for r in self.otherwise.world.replicas if r not in self.script.replicas]
        for replica in self.script.replicas:
            told = fetched(pair.told, replica)
            if told is None or not self._is_told(told):
                continue
            other = told if self.alone else pair.otherwise
            if pair.parted is None and not self.alone:
                other = fetched(other, replica) or other
                other = _all_fetched(other, extra)
            yield self._marked(Pair(told, other, pair.parted))
        if pair.parted is not None:
            # Who fetches at all by then has all there is; who stays behind does so freely.
            for replica in self.otherwise.world.replicas:
                one = _all_fetched(pair.otherwise, [replica])
                if one is not pair.otherwise:
                    yield replace(pair, otherwise=one)

    def _caught_up(self, pair: Pair, step: Step) -> Pair:
        """Who has caught up with its leader by now, has done so with whoever leads otherwise."""
        if pair.parted is None or not isinstance(step, Registered):
            return pair
        earlier = (s.isr for s, _ in self.script.steps[: self.number] if isinstance(s, Registered))
        before = list(earlier)[-1:] or [step.isr]
        return replace(pair, otherwise=_all_fetched(pair.otherwise, sorted(step.isr - before[0])))

    def _is_told(self, telling: Telling) -> bool:
        """Whether a telling goes on as the only story that is followed."""
        return self.story is None or telling.done == self.story[: len(telling.done)]

    def _marked(self, pair: Pair) -> Pair:
        if self.alone:
            return replace(pair, otherwise=pair.told)
        if pair.parted is not None:
            return pair
        of = self.script.replicas
        alike = pair.told.looks(of) == pair.otherwise.looks(of)
        return pair if alike else replace(pair, parted=self.number)

    def _step(self, pair: Pair, step: Step) -> Iterator[Pair]:
        match step:
            case Write():
                if step.number in pair.told.written:
                    yield pair
                else:
                    yield from self._write(pair, step)
            case Stopped():
                for ahead in self._ahead(pair, step.replica, step.kept):
                    yield from self._stop(ahead, step)
            case Started():
                if self._end(pair.told, step.replica) in (step.end, None) or step.end is None:
                    other = pair.otherwise
                    if step.replica not in self.otherwise.not_restarted:
                        other = started(other, step)
                    yield replace(pair, told=started(pair.told, step), otherwise=other)
            case Seen():
                for ahead in self._ahead(pair, step.replica, step.end):
                    told = back(ahead.told, step.replica)
                    other = back(ahead.otherwise, step.replica)
                    if step.end is None or self._end(told, step.replica) == step.end:
                        yield replace(ahead, told=told, otherwise=other)
            case Registered():
                yield from self._register(pair, step)

    def _ahead(self, pair: Pair, replica: int, end: int | None) -> list[Pair]:
        """Where a leader's log is told to be longer: with the writes that were answered later, or
        never."""
        pairs = [pair]
        while pairs and end is not None:
            broker = pairs[0].told.machine.world.brokers[replica]
            now = broker.log.log_end_offset
            if broker.role != "leader" or not broker.running or now >= end:
                break
            write = self._write_at(pairs[0].told, replica, now, broker.leader_epoch)
            write = write or Write(UNANSWERED + now, replica, now, end, None, None, None)
            pairs = list(self._write(pairs[0], write))
        return pairs

    def _write_at(
        self, telling: Telling, leader: int, offset: int, leader_epoch: int | None
    ) -> Write | None:
        """The write that a leader took at an offset, though it was answered later."""
        for write in self.script.writes:
            same = write.leader in (leader, None) and write.first == offset
            if same and write.leader_epoch in (leader_epoch, None):
                return None if write.number in telling.written else write
        return None

    def _end(self, telling: Telling, replica: int) -> int | None:
        broker = telling.machine.world.brokers.get(replica)
        return None if broker is None else broker.log.log_end_offset

    def _write(self, pair: Pair, step: Write) -> Iterator[Pair]:
        told = wrote(pair.told, step, self.world, at_leader=False)
        if told is None:
            return
        other = None
        if pair.parted is None:
            other = wrote(pair.otherwise, step, self.otherwise.world, at_leader=False)
        if other is None:
            other = wrote(pair.otherwise, step, self.otherwise.world, at_leader=True)
        if other is not None:
            yield replace(pair, told=told, otherwise=other)

    def _stop(self, pair: Pair, step: Stopped) -> Iterator[Pair]:
        """Where the release cuts by high watermarks, and nothing tells what the file of them said,
        it may say what it said before, or what is known now; and its last fetch may have reached
        its leader, whose answer came too late."""
        broker = pair.told.machine.world.brokers[step.replica]
        by_mark = broker.behaviour.truncation == BY_HIGH_WATERMARK
        marks = [step.high_watermark]
        if step.high_watermark is None and by_mark:
            marks.append(broker.high_watermark)
        told = fetched(pair.told, step.replica, lost=True) if by_mark else None
        pairs = [pair]
        if told is not None:
            other = pair.otherwise
            if pair.parted is None:
                other = fetched(other, step.replica, lost=True) or other
            pairs.append(self._marked(replace(pair, told=told, otherwise=other)))
        for one in pairs:
            for mark in marks:
                yield from self._stop_with(one, step._replace(high_watermark=mark))

    def _stop_with(self, pair: Pair, step: Stopped) -> Iterator[Pair]:
        told = stopped(pair.told, step, self.world)
        if told is None:
            return
        other = stopped(pair.otherwise, step, self.otherwise.world)
        if other is None:  # It holds less than it kept in truth: it loses nothing.
            other = stopped(pair.otherwise, step._replace(kept=None), self.otherwise.world)
        if other is None:
            return
        if pair.parted is not None:
            other = changed(other, Change("away", step.replica), _NOTHING) or other
        yield replace(pair, told=told, otherwise=other)

    def _register(self, pair: Pair, step: Registered) -> Iterator[Pair]:
        c = pair.told.machine.world.controller
        if (c.leader, frozenset(c.isr)) == (step.leader, step.isr) or _is_later(pair, step):
            if _is_of_kind(pair.told, step):
                yield pair
            return
        by_rule = False
        for causes in self._causes(pair.told, step):
            if by_rule and causes[0].cause in BY_NAME:
                return  # What the rules do by themselves nobody has to do.
            told: Telling | None = pair.told
            for cause in causes:
                told = None if told is None else changed(told, cause, step)
            if told is None:
                continue
            c = told.machine.world.controller
            if (c.leader, frozenset(c.isr)) != (step.leader, step.isr):
                continue
            if not _is_of_kind(told, step):
                continue
            by_rule = True
            other = pair.otherwise
            for cause in causes:
                other = self._otherwise(other, cause, step)
            yield replace(pair, told=told, otherwise=other)

    def _otherwise(self, telling: Telling, cause: Change, step: Registered) -> Telling:
        """The same cause where things are otherwise; nothing where it cannot be."""
        world = telling.machine.world
        if cause.cause == "elect" and world.controller.leader is None:
            return telling
        if cause.cause in FORCED:
            # With the setting on it was the setting that did it, else somebody forced it.
            if self.script.unclean and not world.unclean_leader_election:
                return telling
            if step.leader_epoch in self.otherwise.not_forced:
                return telling
        return changed(telling, cause, step) or telling

    def _causes(self, telling: Telling, step: Registered) -> Iterator[tuple[Change, ...]]:
        """What may have brought the registration about: one cause, or one for each who left."""
        c = telling.machine.world.controller
        gone = [r for r in c.isr if r not in step.isr]
        if step.leader == c.leader:
            brokers = telling.machine.world.brokers
            lags = [
                r for r in gone if brokers[r].running and not had_ended(self.script, self.number, r)
            ]
            if lags:
                yield tuple(Change("lag" if r in lags else "away", r) for r in gone)
            yield tuple(Change("away", r) for r in gone)
            return
        if c.leader is not None:
            away = [Change("away", r) for r in gone if r != c.leader]
            for how in ("away", "drain"):
                yield (*away, Change(how, c.leader))
            yield (Change("away", c.leader),)
            yield (Change("preferred", None),)
        if step.leader is not None:
            unclean = step.kind in UNCLEAN_KINDS
            if unclean:
                yield (Change("forced", None),)
            yield (Change("elect_unclean" if unclean else "elect", step.leader),)

    def _least_lost(self, pairs: list[Pair], step: Step) -> list[Pair]:
        """After a clean stop a disk lost no more than it must have: who holds less may never have
        fetched it."""
        if not isinstance(step, Stopped) or step.kept is None or step.reason != "clean":
            return pairs
        whole = [p for p in pairs if " loses " not in p.told.done[-1]]
        return whole or pairs

    def _fit(self, pairs: list[Pair], fits: Callable[[Telling], bool], what: str) -> list[Pair]:
        kept = [pair for pair in pairs if fits(pair.told)]
        if not kept:
            raise CannotTell(
                f"no course of events by Kafka's rules ends as {what} do: the evidence lacks a "
                "step, or the model of Kafka does"
            )
        if len(kept) > MOST_PAIRS:
            raise TooManyStories()
        return kept

    def _ends(self, telling: Telling, ends: dict[int, int]) -> bool:
        return all(self._end(telling, r) == end for r, end in ends.items())

    def _healed(self, pair: Pair) -> Pair:
        """The other telling once everybody has fetched what there is."""
        return replace(pair, otherwise=_all_fetched(pair.otherwise, self.otherwise.world.replicas))


_NOTHING = Registered(None, -1, frozenset(), None)


def _is_of_kind(telling: Telling, step: Registered) -> bool:
    """Whether an election that the evidence calls clean was not an unclean one."""
    return not telling.unclean or step.kind is None or step.kind in UNCLEAN_KINDS


def _is_later(pair: Pair, step: Registered) -> bool:
    """Whether a broker that starts was registered already by the rules: what the evidence tells in
    two steps, the machine did in one."""
    c = pair.told.machine.world.controller
    return c.leader is not None and step.leader is None and c.leader_epoch > step.leader_epoch


def _distinct(pairs: Iterable[Pair]) -> list[Pair]:
    found: dict[object, Pair] = {}
    for pair in pairs:
        found.setdefault(pair.key(), pair)
        if len(found) > MOST_PAIRS:
            raise TooManyStories()
    return list(found.values())


def _all_fetched(telling: Telling, replicas: Iterable[int]) -> Telling:
    """After everybody has fetched what there is to fetch."""
    for _ in range(4):
        before = telling
        for replica in replicas:
            telling = fetched(telling, replica) or telling
        if telling is before:
            return telling
    return telling
