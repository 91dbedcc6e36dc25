"""The steps of a choice, in order: what can be undone first, what cannot last, each with its check.

Nothing of it is run here. Who carries it out goes on only where the check prints what it must.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from replication.decisions import commands
from replication.decisions.candidates import (
    Candidate,
    Older,
    Outlook,
    struck_at_start,
)
from replication.decisions.choosing import ANY, ELECT, KEEP, NOTHING_TO_DECIDE, START, Choice
from replication.decisions.commands import Row, row_of
from replication.decisions.ranges import with_open_end
from replication.decisions.traps import (
    UNCLEAN_IS_ON,
    Trap,
    mode_of,
    release_of,
    setting_is_heeded,
    traps,
    unclean_is_on,
)
from replication.decisions.waiting import NotYet, apart, chosen_of, not_yet
from replication.reports.vocabulary import runs_of_offsets


@dataclass(frozen=True, slots=True)
class Step:
    """One step. at_broker: its command runs on the machine of `broker`. shows, hides: extended
    regular expressions that some line, and no line, of what the check prints matches; within: for
    how many seconds to ask again until it does, 0 where the first answer counts. undo: how to
    take it back; None where that cannot be: then copy_first is the command that keeps what it
    destroys. tried: the releases on whose brokers the command was tried."""

    action: str
    broker: int | None
    words: str
    command: str | None
    at_broker: bool
    check: str
    prints: str
    shows: str
    hides: str | None
    within: int
    undo: str | None
    copy_first: str | None
    note: str
    tried: tuple[str, ...]


@dataclass(slots=True)
class Plan:
    """What to do, in order; who must not start yet; which traps are on the way. release_known:
    whether the commands are those of the cluster's own release."""

    steps: list[Step] = field(default_factory=list)
    not_yet: list[NotYet] = field(default_factory=list)
    traps: list[Trap] = field(default_factory=list)
    release_known: bool = True


def plan_of(outlook: Outlook, choice: Choice) -> Plan:
    """The plan of a choice; where nothing is chosen, what keeps every choice open."""
    if choice.advice in (NOTHING_TO_DECIDE, ANY):
        return Plan()
    steps = _Steps(outlook, choice)
    steps.add_all()
    found = traps(outlook, choice)
    return Plan(
        steps.steps, not_yet(outlook, choice, found), found, release_of(outlook) is not None
    )


def plan_of_older(outlook: Outlook, choice: Choice, older: Older) -> list[Step]:
    """The steps that put an older copy back in the place of its broker's directory and elect it;
    none where what it would lose is not known, or its broker is no replica."""
    of_it = [c for c in outlook.candidates if c.replica == older.replica]
    if not older.lost or not of_it:
        return []
    steps = _Steps(outlook, choice)
    steps.put_back(of_it[0])
    return steps.steps


class _Steps:
    def __init__(self, outlook: Outlook, choice: Choice) -> None:
        self.outlook, self.choice = outlook, choice
        self.release, self.mode = release_of(outlook), mode_of(outlook)
        self.chosen = chosen_of(outlook, choice)
        self.steps: list[Step] = []

    def put_back(self, to: Candidate) -> None:
        """An older copy in the place of this candidate's directory, which then is to lead."""
        candidates = self.outlook.candidates
        for c in candidates:
            words = f"Copy the partition's directory of broker {c.replica}."
            self._add(commands.COPY, c.replica, words)
        self._add_controllers()
        for c in candidates:
            if c.runs:
                words = f"Stop broker {c.replica}, so that nobody fetches or leads meanwhile."
                self._add(commands.STOP, c.replica, words)
        words = f"Put the older copy in the place of broker {to.replica}'s directory."
        self._add(commands.PUT_BACK, to.replica, words)
        row = row_of(commands.ELECT, self.release, self.mode)
        if row is not None and row.sets_only:
            if not self._is_set():
                self._add(commands.ELECT, to.replica, "Allow unclean elections of this topic.")
            words = f"Start broker {to.replica}, and no other before it."
            self._add(commands.LEAD_UNCLEANLY, to.replica, words)
        else:
            self._add(commands.START, to.replica, f"Start broker {to.replica}, and no other.")
            words = f"If nobody leads the partition then: elect broker {to.replica} uncleanly."
            self._add(commands.ELECT, to.replica, words)
        for c in candidates:
            if c is not to:
                words = f"Start broker {c.replica}: it cuts its log to that of broker {to.replica}."
                self._add(commands.FOLLOW, c.replica, words, cuts=True)
        if self._setting_is_left_on() or self._followers_need_the_setting():
            self._take_back(to.replica)

    def add_all(self) -> None:
        for number in self._to_copy():
            self._add(commands.COPY, number, f"Copy the partition's directory of broker {number}.")
        for copy in self.chosen.copies if self.chosen is not None else ():
            if copy.replica in self.outlook.away:
                continue
            told = runs_of_offsets(with_open_end(copy.ranges))
            words = f"See in the copy of broker {copy.replica} the records at stake: {told}."
            self._add(commands.DUMP, copy.replica, words, first=copy.ranges[0][0])
        if self.chosen is None:
            return
        number = self.chosen.replica
        others = [c for c in self.outlook.candidates if c.replica != number]
        differ = apart(self.outlook, self.choice)
        if self.choice.advice == KEEP:
            others = [c for c in others if c.replica in differ]
        else:
            self._add_controllers()
        alone = self.choice.advice != KEEP and self._must_be_alone()
        stops = [c for c in others if c.runs and (alone or c.replica in differ)]
        for c in stops:
            why = f"so that only broker {number} can be elected"
            words = f"Stop broker {c.replica}, {why if alone else 'to move its directory away'}."
            self._add(commands.STOP, c.replica, words)
        for c in others:
            if c.replica in differ:
                self._move_away(c.replica, number)
        if self.choice.advice == START:
            self._add_start(number, ask=any(c.runs and c not in stops for c in others))
        elif self.choice.advice == ELECT:
            self._add_election(number)
        if self._followers_stop_without_the_setting():
            words = (
                "Allow unclean elections of this topic: without that a follower that has more than "
                "its leader stops its broker."
            )
            self._add(commands.ELECT, number, words)
        for c in others:
            cuts = c.replica in self._cut() - differ
            if c.replica in self.choice.safe and not cuts and c not in stops:
                continue
            why = ""
            if cuts:
                why = " and its own directory is copied: it cuts its log to the leader's"
            elif c.replica in differ:
                why = " and its own directory is moved away: it fetches the leader's whole log"
            words = f"Start broker {c.replica} once broker {number} leads{why}."
            self._add(commands.FOLLOW, c.replica, words, cuts=cuts)
        if self._followers_stop_without_the_setting() or (
            self.choice.advice == ELECT and self._followers_need_the_setting()
        ):
            words = (
                f"Take the setting back, once each of them follows{self._was_set()}: without it "
                "one that has more than its leader stops its broker."
            )
            self._add(commands.UNCLEAN_OFF, number, words)
        if self.choice.advice == KEEP:
            return
        preferred = next(iter(self.outlook.line.assigned or (number,)))
        if preferred != number and preferred not in self.outlook.away:
            words = f"If broker {preferred} is to lead as before: once it is in the ISR, elect it."
            self._add(commands.PREFER, preferred, words)

    def _move_away(self, number: int, leader: int) -> None:
        words = (
            f"Move the partition's directory of broker {number} away before it starts for any "
            f"partition: no rule is sure to cut that log to the one of broker {leader}."
        )
        self._add(commands.MOVE_AWAY, number, words)

    def _add_controllers(self) -> None:
        """Before the first broker: where none runs nobody knows whether a controller does."""
        if not any(c.runs for c in self.outlook.candidates):
            words = "See that the controllers have a leader: start first those that are down."
            self._add(commands.CONTROLLERS, None, words)

    def _add_start(self, number: int, *, ask: bool) -> None:
        """Its mere start elects it. ask: some broker is there that can be asked for the leader."""
        row = row_of(commands.LEADERLESS, self.release, self.mode)
        if self.choice.leader is None and (ask or (row is not None and "--zookeeper" in row.check)):
            self._add(commands.LEADERLESS, None, "See that nobody leads the partition by now.")
        if_down = " if it is down" if self._chosen_runs() else ""
        first = not_yet(self.outlook, self.choice, traps(self.outlook, self.choice))
        alone = ", and no other before it" if first or self._must_be_alone() else ""
        self._add(commands.LEAD, number, f"Start broker {number}{if_down}{alone}.")
        if self._may_leave_the_isr(number):
            words = f"If nobody leads the partition then: elect broker {number} uncleanly."
            self._add(commands.ELECT, number, words)

    def _may_leave_the_isr(self, number: int) -> bool:
        """Whether its start need not elect it. KRaft strikes a broker that registers anew from the
        ISR while others of it count as alive, as they do for a session after the controllers came
        back (4.3.0: seen; ReplicationControlManager.handleBrokerFenced)."""
        isr = self.outlook.state.registration.isr
        down = {c.replica for c in self.outlook.candidates if not c.runs} | self.outlook.away
        return isr is None or (self.mode == "kraft" and bool({*isr} & down - {number}))

    def _add_election(self, number: int) -> None:
        row = row_of(commands.ELECT, self.release, self.mode)
        if row is not None and row.sets_only:
            # It elects at the next start of a broker: this one has to be it.
            if self._chosen_runs():
                words = f"Stop broker {number}: its next start is to elect it."
                self._add(commands.STOP, number, words)
            self._add(commands.LEADERLESS, None, "See that nobody leads the partition by now.")
            if not self._is_set():
                self._add(commands.ELECT, number, "Allow unclean elections of this topic.")
            words = f"Start broker {number}, and no other before it: that elects it uncleanly."
            self._add(commands.LEAD_UNCLEANLY, number, words)
        else:
            if not self._chosen_runs():
                self._add(commands.START, number, f"Start broker {number}, and no other.")
            if self._start_may_elect(number):
                words = f"If nobody leads the partition then: elect broker {number} uncleanly."
                self._add(commands.ELECT, number, words)
            else:
                self._add(commands.LEADERLESS, None, "See that nobody leads the partition by now.")
                self._add(commands.ELECT, number, f"Elect broker {number} uncleanly.")
        if self._setting_is_left_on() and not self._followers_need_the_setting():
            self._take_back(number)

    def _take_back(self, number: int) -> None:
        words = f"Take the setting back{self._was_set()}."
        if not setting_is_heeded(self.release, self.mode):
            words = f"{words[:-1]}: from 3.9 on it would elect at the next crash."
        self._add(commands.UNCLEAN_OFF, number, words)

    def _start_may_elect(self, number: int) -> bool:
        """Whether the start of one that is to be elected uncleanly may do it by itself: the
        controller struck others from the ISR before, or the setting, where it is heeded, is on, or
        nothing tells that it is off (4.3.0: seen)."""
        told = self.outlook.state.settings.unclean_leader_election
        return number in struck_at_start(self.outlook.state) or (
            told is not False and setting_is_heeded(self.release, self.mode)
        )

    def _followers_stop_without_the_setting(self) -> bool:
        """Whether one that was elected by its start has followers with more than it has, in such a
        release: seen on 1.1.1, after the only member of the ISR had lost its tail."""
        need = self._followers_need_the_setting() and not self._is_set()
        more = self._cut() - apart(self.outlook, self.choice)
        return self.choice.advice == START and need and bool(more)

    def _followers_need_the_setting(self) -> bool:
        """Whether a follower that has more than its leader stops its broker for good, unless
        unclean elections are allowed: where logs may be cut by the high watermark (seen on
        0.10.2.2; handleOffsetOutOfRange of ReplicaFetcherThread)."""
        row = row_of(commands.ELECT, self.release, self.mode)
        return row is not None and row.sets_only

    def _is_set(self) -> bool:
        """Whether unclean elections were allowed before: then no step allows them."""
        return self.outlook.state.settings.unclean_leader_election is True

    def _was_set(self) -> str:
        return ", unless it is to stay as it was before this" if self._is_set() else ""

    def _chosen_runs(self) -> bool:
        return self.chosen is not None and self.chosen.runs

    def _must_be_alone(self) -> bool:
        """Whether another one could be elected, or leads."""
        leads = self.choice.leader is not None and self.choice.leader != self.choice.replica
        not_known = self.outlook.state.registration.isr is None
        return self.choice.advice == ELECT or leads or not_known or self._others_may_be_elected()

    def _to_copy(self) -> list[int]:
        """Whose directory a step may destroy, with something in it; all where nothing is chosen."""
        holding = [c.replica for c in self.outlook.candidates if not self._is_empty(c)]
        if self.chosen is None:
            return holding
        own = set[int]() if self.choice.advice == KEEP else {self.chosen.replica}
        return sorted((self._cut() | own) & {*holding})

    def _is_empty(self, c: Candidate) -> bool:
        """Whether its copy shows that it has nothing: of an emptied disk nothing can be copied."""
        replica = self.outlook.state.replicas.get(c.replica)
        return c.at_hand and replica is not None and not replica.log.log_end_offset

    def _cut(self) -> set[int]:
        """Who has a record that the chosen one lacks, and may lose it with its first fetch."""
        copies = () if self.chosen is None else self.chosen.copies
        return {x.replica for x in copies if x.ranges} - self.outlook.away

    def _others_may_be_elected(self) -> bool:
        return any(t.name == UNCLEAN_IS_ON for t in traps(self.outlook, self.choice))

    def _setting_is_left_on(self) -> bool:
        """Whether unclean elections are allowed once another one leads. KRaft before 3.9 does not
        heed that, but does from its upgrade on."""
        row = row_of(commands.ELECT, self.release, self.mode)
        by_setting = row is not None and row.command is not None and "kafka-configs" in row.command
        return by_setting or unclean_is_on(self.outlook)

    def _add(
        self, action: str, broker: int | None, words: str, *, cuts: bool = False, first: int = 0
    ) -> None:
        """first: the first offset that the check is to show."""
        row = row_of(action, self.release, self.mode)
        if row is None:
            return
        state = self.outlook.state
        names = {
            "topic": state.topic,
            "partition": state.partition,
            "broker": broker,
            "directory": f"LOG_DIR/{state.topic}-{state.partition}",
            "offset": first,
        }
        destroys = cuts or row.undo is None
        self.steps.append(
            Step(
                action,
                broker,
                words,
                _filled(row.command, names),
                row.at_broker,
                row.check.format(**names),
                row.prints.format(**names),
                row.shows.format(**_quoted(names)),
                _filled(row.hides, _quoted(names)),
                row.within,
                None if destroys else _filled(row.undo, names),
                self._copy_command(names, cuts) if destroys else None,
                row.note,
                row.tried,
            )
        )

    def _copy_command(self, names: dict[str, object], cuts: bool) -> str | None:
        """The copies that keep what a step destroys: of this broker's directory where it is cut,
        else of all that are cut once the chosen one leads."""
        row: Row | None = row_of(commands.COPY, self.release, self.mode)
        own = [names["broker"]]
        brokers: Sequence[object] = own if cuts else sorted(self._cut()) or own
        told = [
            row.command.format(**{**names, "broker": b}) for b in brokers if row and row.command
        ]
        return "; ".join(told) or None


def _quoted(names: dict[str, object]) -> dict[str, object]:
    """The names as parts of a regular expression."""
    return {name: re.escape(str(value)) for name, value in names.items()}


def _filled(text: str | None, names: dict[str, object]) -> str | None:
    return None if text is None else text.format(**names)
