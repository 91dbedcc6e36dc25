"""Who may lead a partition next: which failures are possible, and whom the controller elects then.

The election rules of the declared release decide, asked with the brokers that may be alive by then,
the settings in force, the ISR and the eligible leader replicas. Sources: KIP-966, KIP-106.
"""

from replication.protocol.ground.risks import Failure
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.ground.versions import Behaviour
from replication.protocol.judgement.reference import never_began
from replication.protocol.rules.election_kraft import election_kraft
from replication.protocol.rules.election_zookeeper import Election, election_zookeeper
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas

# Elections that take a replica which must have what was committed.
CLEAN = ("clean", "eligible_leader_replica")
Heir = tuple[int, int, str]
"""Whose failure lets another lead, who that is, and the kind of its election."""
Brokers = frozenset[int]


def failures(state: State) -> list[Failure]:
    """Every failure after which another log may count, whether that costs records or not; none
    where the release, the assignment or the ISR is not known."""
    assigned, behaviour = state.settings.assigned_replicas, state.behaviour()
    leader = state.registration.leader
    if assigned is None or behaviour is None or state.registration.isr is None:
        return []
    if state.settings.deleted:
        return []
    outlook = _Outlook(state, assigned, behaviour)
    return outlook.without_leader() if leader is None else outlook.after(leader)


class _Outlook:
    """What decides who may lead next.

    able: who may be elected once it is back; trusted: of these, who is elected without doubt. last:
    the last leader. running: brokers not known to be down. up: those that may be alive: one that
    crashed may be back first, or be taken for alive still. unclean: unclean elections are known to
    be allowed; perhaps_unclean: they are, or nothing tells and they are by the release's default.
    """

    def __init__(self, state: State, assigned: tuple[int, ...], behaviour: Behaviour) -> None:
        self.state, self.assigned, self.behaviour = state, assigned, behaviour
        self.isr = frozenset(state.registration.isr or ())
        self.able = self.isr | {*state.registration.eligible_leader_replicas}
        self.trusted, self.last = trusted_replicas(state), led_last(state)
        self.running = frozenset(r for r in assigned if runs(state, r))
        self.up = frozenset(r for r in assigned if not _is_down(state, r))
        self.kraft = (state.settings.controller or behaviour.controller) == "kraft"
        allowed = state.settings.unclean_leader_election
        self.unclean = allowed is True
        self.perhaps_unclean = behaviour.unclean_leader_election if allowed is None else allowed

    # -- a leader is registered -----------------------------------------------------------------
    def after(self, leader: int) -> list[Failure]:
        """What may follow a leader: it stops, or comes back with less than it had, and leads."""
        heirs = self._heirs(leader)
        # Where a member that runs can take over, the leader need not return to lead.
        must_return = not any(kind == "clean" and r in self.running for _, r, kind in heirs)
        if leader not in self.running:
            # A member that runs leads at once: then its failure lets another lead uncleanly.
            at_once = [r for _, r, kind in heirs if kind == "clean" and r in self.running]
            then = [each for r in at_once for each in self._heirs(r, gone=leader)]
            heirs += [each for each in then if each[2] not in CLEAN and each[1] != leader]
        found = [Failure("leader_stops", by, r, kind not in CLEAN) for by, r, kind in heirs]
        if is_away(self.state, self.last):
            found += self._returns_first(leader)
        if must_return:
            found += self._comes_back(leader)
        if self.last not in (None, leader):
            # It was elected, and has not begun to lead.
            unclean = self.state.history.terms[-1].election_kind == "unclean"
            found.append(Failure(_election(clean=not unclean), leader, leader, unclean))
            if leader not in self.running and self._leads_again(self.last):
                found.append(Failure("leader_loses_its_tail", self.last, None, False))
        return found

    def _heirs(self, failed: int, gone: int | None = None) -> list[Heir]:
        """Who may be elected once one has failed, by who may be alive by then. gone: who was down
        before, and had led."""
        up, running = self.up - {failed, gone}, self.running - {failed, gone}
        alive = [up, up | (self.trusted - {failed}), running]
        # A replica outside the ISR may have died unseen: then the next one is elected.
        alive += [up - {r} for r in up - self.trusted if not self.state.is_traced(r)]
        now = self._elected(failed, running)
        if now is None or now.leader is None:
            # Nobody who runs can take over: one of those that are down, if it is back first.
            alive += [running | {r} for r in self.assigned if r != failed and r not in running]
        elections = [self._elected(failed, each) for each in dict.fromkeys(map(frozenset, alive))]
        found = [
            (failed, each.leader, each.kind or "unknown")
            for each in elections
            if each is not None and each.leader is not None
        ]
        return [*dict.fromkeys(found)]

    def _elected(self, failed: int, alive: Brokers) -> Election | None:
        """What the controller decides when a leader has failed."""
        assigned, isr, behaviour = self.assigned, self.isr, self.behaviour
        if not self.kraft:
            return election_zookeeper("offline", assigned, isr, alive, self.unclean, leader=failed)
        left, eligible = isr - {failed}, frozenset(self.trusted) - isr
        if behaviour.eligible_leader_replicas:
            minimum = _minimum(self.state)
            eligible = eligible_leader_replicas(isr, left, eligible, minimum).replicas
        elif not left:
            left = isr
        cause = "unclean" if self.unclean else "online"
        return election_kraft(
            cause, assigned, left, alive, behaviour, leader=failed, eligible=eligible
        )

    def _returns_first(self, leader: int) -> list[Failure]:
        """A leader that is away keeps its role if it is back before another is elected: once the
        only other member that runs stops; where no other runs, by its mere start."""
        others = (self.running & self.trusted) - {leader}
        if leader not in self.isr or len(others) > 1:
            return []
        found = [Failure("leader_stops", other, leader, False) for other in others]
        return found or [Failure("clean_election", leader, leader, False)]

    # -- nobody leads ---------------------------------------------------------------------------
    def without_leader(self) -> list[Failure]:
        """What each replica that may be elected costs, and what one that is waited for may lose."""
        found: list[Failure] = []
        for r in self.assigned:
            waited_for = self._is_waited_for(r)
            if waited_for:
                found += self._comes_back(r)
            if r != self.last:
                clean = r in self.trusted
                found.append(Failure(_election(clean=clean), r, r, not clean))
            elif waited_for and self._is_elected_with_what_is_left(r):
                found.append(Failure(_election(clean=r in self.trusted), r, r, False))
        return found

    def _is_waited_for(self, replica: int) -> bool:
        """Whether nobody may lead before a replica is back: the last leader, whoever is back first
        of all, or the one member without which nobody may be elected."""
        first = self._leads_again(replica) and (replica == self.last or self._all_are_away())
        only = must_wait_for(self.state, replica) and self._leads_although_emptied(replica)
        return self.last is not None and (first or only)

    def _is_elected_with_what_is_left(self, last: int) -> bool:
        """Whether the last leader may be elected: not while another is elected at once."""
        at_once = self.running if self.perhaps_unclean else self.running & self.trusted
        return at_once <= {last} and (last in self.isr or self._leads_although_emptied(last))

    # -- either ---------------------------------------------------------------------------------
    def _comes_back(self, replica: int) -> list[Failure]:
        """What one that must return to lead may come back without."""
        found = [Failure("leader_loses_its_tail", replica, None, False)]
        if self._leads_although_emptied(replica):
            found.append(Failure("leader_loses_its_log", replica, None, False))
        return found

    def _leads_although_emptied(self, replica: int) -> bool:
        """Whether a replica that is back with an emptied directory may be elected, and the others
        truncate to that: nobody else may be, or all are down and it is back first."""
        alone = not self.perhaps_unclean and self.able <= {replica}
        return len(self.assigned) > 1 and (alone or self._all_are_away())

    def _all_are_away(self) -> bool:
        """Whether all that may be elected are down: whoever is back first leads, with what it has.

        With eligible leader replicas one may be waited for (KIP-966); a KRaft controller takes one
        member after another out of the ISR, and waits for the last.
        """
        if self.behaviour.eligible_leader_replicas:
            return False
        if self.unclean:
            return not self.running
        return len(self.able) != 1 and not self.kraft and not self.able & self.running

    def _leads_again(self, replica: int) -> bool:
        return self.unclean or replica in self.able


def _election(*, clean: bool) -> str:
    """The word for an election that needs no further failure."""
    return "clean_election" if clean else "unclean_election"


def began(state: State, term: LeaderTerm) -> bool:
    """Whether a broker that was elected led, as far as is known: nothing tells that it did not, or
    its epoch file names the epoch, whatever its lines say."""
    if term.start_event_id or not never_began(state, term):
        return True
    replica = state.replicas.get(term.leader)
    return replica is not None and replica.filed_epoch == term.leader_epoch


def last_begun(state: State) -> LeaderTerm | None:
    """The last term in which a leader led, as far as is known."""
    return next((t for t in reversed(state.history.terms) if began(state, t)), None)


def led_last(state: State) -> int | None:
    """The last leader; one that never began does not count while another is known."""
    last, terms = last_begun(state), state.history.terms
    if last is None and terms:
        last = terms[-1]
    return None if last is None else last.leader


def is_away(state: State, last: int | None) -> bool:
    """Whether the registered leader, which led last, stopped and has not led since: another is
    elected once that is noticed, unless it is back before."""
    terms, leader = state.history.terms, state.registration.leader
    replica = None if leader is None else state.replicas.get(leader)
    if replica is None or not terms or replica.role is not None:
        return False
    return terms[-1].leader == leader == last and terms[-1].ended == "stopped"


def must_wait_for(state: State, replica: int) -> bool:
    """Whether it is the only replica that may be elected, a member of the ISR."""
    told = state.registration
    able = {*(told.isr or ()), *told.eligible_leader_replicas}
    return able == {replica} == {*(told.isr or ())}


def trusted_replicas(state: State) -> set[int]:
    """Who is elected without doubt: members of the ISR, and the eligible leader replicas that are
    still eligible when they are back: a stop that was not clean ends that (KIP-966)."""
    told = state.registration
    eligible = {r for r in told.eligible_leader_replicas if not has_crashed(state, r)}
    return {*(told.isr or ()), *eligible}


def too_few(state: State, members: set[int]) -> bool:
    """Whether an ISR of these is below min.insync.replicas."""
    return 0 < len(members) < _minimum(state)


def _minimum(state: State) -> int:
    settings = state.settings
    return min(settings.min_insync_replicas or 1, len(settings.assigned_replicas or ()))


def runs(state: State, replica: int) -> bool:
    """Whether a broker is not known to be down."""
    return not (_is_down(state, replica) or has_crashed(state, replica))


def has_crashed(state: State, replica: int) -> bool:
    """Whether a broker ended without a clean stop, and was not seen since."""
    known = state.replicas.get(replica)
    return known is not None and known.crashed


def _is_down(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return known is not None and known.stopped is True
