"""Who may lead next: by which election, at whose failure, and who would have to return for it.

The election rules of the declared version decide, with the settings in force, the ISR, the eligible
replicas and who is known to be down. Sources: KIP-966, KIP-106, `election_kraft`,
`election_zookeeper`.
"""

from replication.protocol.ground.risks import Failure
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.ground.versions import Behaviour
from replication.protocol.judgement.reference import never_began
from replication.protocol.rules.election_kraft import election_kraft
from replication.protocol.rules.election_zookeeper import Election, election_zookeeper
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas

CLEAN = ("clean", "eligible_leader_replica")
Outlook = tuple[tuple[int, ...], list[tuple[int, int, str]]]
"""The assignment, and at whose failure who may lead, with the kind of election."""


def outlook(state: State) -> Outlook | None:
    """The assignment, and who may lead once the leader is gone; None where that is not known.

    Where the leader is gone already, a member that runs leads at once: then it is that one's
    failure that lets another lead beside the ISR.
    """
    registration, behaviour = state.registration, state.behaviour()
    assigned = state.settings.assigned_replicas
    if behaviour is None or assigned is None or registration.isr is None or state.settings.deleted:
        return None
    if registration.leader is None:
        return assigned, []
    leader = registration.leader
    heirs = _heirs(state, behaviour, assigned, leader)
    if not runs(state, leader):
        for _, heir, kind in list(heirs):
            if kind == "clean" and runs(state, heir):
                then = _heirs(state, behaviour, assigned, heir, gone=leader)
                heirs += [each for each in then if each[2] not in CLEAN and each[1] != leader]
    return assigned, heirs


def _heirs(
    state: State,
    behaviour: Behaviour,
    assigned: tuple[int, ...],
    failed: int,
    gone: int | None = None,
) -> list[tuple[int, int, str]]:
    """Who may lead once one has failed, and by which kind of election; nobody: it must return.
    gone: who is down beside it, and was led by.

    Brokers that are known to be down may be taken for alive still, or come back first: one outside
    the ISR leads only where nobody else can, and unclean elections are allowed.
    """
    up = frozenset(r for r in assigned if r not in (failed, gone) and not _is_down(state, r))
    trusted = trusted_replicas(state)
    back = up | frozenset(r for r in assigned if r in trusted and r != failed)
    found: list[tuple[int, int, str]] = []
    # One outside the ISR may have died unseen: then the next one is elected.
    unseen = [up - {r} for r in assigned if r in up - trusted and not state.is_traced(r)]
    # Where nobody who runs can take over, it is one of those that are down, if it is back first.
    running = frozenset(r for r in up if not has_crashed(state, r))
    alone = _election(state, behaviour, assigned, failed, running)
    nobody = alone is None or alone.leader is None
    returning = (
        [running | {r} for r in assigned if r != failed and r not in running] if nobody else []
    )
    for alive in dict.fromkeys((up, back, running, *unseen, *returning)):
        election = _election(state, behaviour, assigned, failed, alive)
        if election is not None and election.leader is not None:
            heir = (failed, election.leader, election.kind or "unknown")
            found += [heir] if heir not in found else []
    return found


def _election(
    state: State,
    behaviour: Behaviour,
    assigned: tuple[int, ...],
    failed: int,
    alive: frozenset[int],
) -> Election | None:
    """What the controller decides when the leader is gone."""
    registration, settings = state.registration, state.settings
    isr = frozenset(registration.isr or ())
    unclean = settings.unclean_leader_election is True
    if (settings.controller or behaviour.controller) == "zookeeper":
        return election_zookeeper("offline", assigned, isr, alive, unclean, leader=failed)
    keeps = not behaviour.eligible_leader_replicas and isr == {failed}
    left = isr if keeps else isr - {failed}
    eligible = frozenset(_eligible(state))
    if behaviour.eligible_leader_replicas:
        minimum = min(settings.min_insync_replicas or 1, len(assigned))
        eligible = eligible_leader_replicas(isr, left, eligible, minimum).replicas
    return election_kraft(
        "unclean" if unclean else "online", assigned, left, alive, behaviour,
        leader=failed, eligible=eligible,
    )  # fmt: skip


def failures(state: State, seen: Outlook | None) -> list[Failure]:
    """Every failure that a danger could name now, whether records hang on it or not: (failure,
    broker, next leader, whether that would be an unclean election)."""
    if seen is None:
        return []
    assigned, heirs = seen
    leader, last = state.registration.leader, led_last(state)
    if leader is None:
        trusted = trusted_replicas(state)
        found: list[Failure] = []
        back = [] if last is None else waited_for(state, assigned, last)
        for r in assigned:
            if r in back:
                found.append(("leader_loses_its_tail", r, None, False))
                if leads_on_empty(state, assigned, r):
                    found.append(("leader_loses_its_log", r, None, False))
            if r == last and r in back:
                if is_elected_short(state, assigned, r):
                    found.append((election_of(trusted, r), r, r, False))
                continue
            if r not in trusted:
                found.append(("unclean_election", r, r, True))
            else:
                found.append(("clean_election", r, r, False))
        return found
    found = [("leader_stops", failed, heir, kind not in CLEAN) for failed, heir, kind in heirs]
    if is_away(state):
        found += [(*each, leader, False) for each in lets_it_return(state, assigned, leader)]
    if must_return(state, heirs):
        found.append(("leader_loses_its_tail", leader, None, False))
        if leads_on_empty(state, assigned, leader):
            found.append(("leader_loses_its_log", leader, None, False))
    if last not in (None, leader):
        kind = kind_of_election(state)
        found.append((kind, leader, leader, kind == "unclean_election"))
        if may_return(state, leader, last):
            found.append(("leader_loses_its_tail", last, None, False))
    return found


def led_last(state: State) -> int | None:
    """Who led last: of those that were elected, not one that is known never to have begun."""
    terms = state.history.terms
    led = (t for t in reversed(terms) if not never_began(state, t) or wrote_in(state, t))
    return next((t.leader for t in led), terms[-1].leader if terms else None)


def wrote_in(state: State, term: LeaderTerm) -> bool:
    """Whether its leader has an epoch file that names that term, whatever its lines say."""
    replica = state.replicas.get(term.leader)
    return replica is not None and replica.filed_epoch == term.leader_epoch


def must_return(state: State, heirs: list[tuple[int, int, str]]) -> bool:
    """Whether no member of the ISR that runs can take over: who else is to be elected may be down
    as well, and an eligible one that stopped uncleanly is eligible no more."""
    return not any(kind == "clean" and runs(state, heir) for _, heir, kind in heirs)


def leads_on_empty(state: State, assigned: tuple[int, ...], last: int) -> bool:
    """Whether nobody but that broker, back with an emptied directory, may be elected, while others
    would cut to what it has.

    An eligible replica that crashed is waited for still: until it is back nobody leads (KIP-966).
    """
    waited_for = not _is_unclean_allowed(state) and _able(state) <= {last}
    return len(assigned) > 1 and (waited_for or all_are_away(state, assigned))


def all_are_away(state: State, assigned: tuple[int, ...]) -> bool:
    """Whether all that may be elected, several, are known to be down: whoever is back first leads,
    with what it has by then. With eligible replicas one may be waited for (KIP-966); a KRaft
    controller takes one member after another out of the ISR, and waits for the last."""
    behaviour, able = state.behaviour(), _able(state)
    if behaviour is None or behaviour.eligible_leader_replicas:
        return False
    if state.settings.unclean_leader_election is True:
        able = {*assigned}
    elif len(able) == 1 or (state.settings.controller or behaviour.controller) == "kraft":
        return False
    return not any(runs(state, r) for r in able)


def _able(state: State) -> set[int]:
    """Who may be elected once it is back: members and eligible replicas."""
    registration = state.registration
    return {*(registration.isr or ()), *registration.eligible_leader_replicas}


def trusted_replicas(state: State) -> set[int]:
    """Who may be elected without doubt."""
    return {*(state.registration.isr or ()), *_eligible(state)}


def _eligible(state: State) -> set[int]:
    """Of the eligible leader replicas those that stay so when they are back: who registers after a
    stop that was not clean is taken out first (KIP-966)."""
    eligible = set(state.registration.eligible_leader_replicas)
    return {r for r in eligible if not has_crashed(state, r)}


def leads_again(state: State, last: int) -> bool:
    """Whether the last leader may be elected: as a member, as the last known leader, once nobody
    else is eligible, or as anybody may be."""
    return last in _able(state) or state.settings.unclean_leader_election is True


def may_return(state: State, elected: int, last: int) -> bool:
    """Whether who led last may lead next: who was elected after it never began, and is down."""
    return not runs(state, elected) and leads_again(state, last)


def waited_for(state: State, assigned: tuple[int, ...], last: int) -> list[int]:
    """Who may have to return to lead: the last leader; a member without which nobody may be
    elected, whoever led last; whoever is back first, where all are down. An eligible replica that
    lost its log is that no more (KIP-966)."""
    first = all_are_away(state, assigned)
    return [
        r
        for r in assigned
        if ((first or r == last) and leads_again(state, r)) or must_wait_for(state, assigned, r)
    ]


def must_wait_for(state: State, assigned: tuple[int, ...], replica: int) -> bool:
    """Whether it is a member without which nobody may be elected."""
    able, members = _able(state), state.registration.isr or ()
    return able == {replica} and replica in members and leads_on_empty(state, assigned, replica)


def is_away(state: State) -> bool:
    """Whether who is registered as the leader ended, and has not led again: another is elected once
    that is noticed; it leads on where nobody else is, or if it is back before."""
    terms, leader = state.history.terms, state.registration.leader
    replica = None if leader is None else state.replicas.get(leader)
    if replica is None or not terms or replica.role is not None:
        return False
    return terms[-1].leader == leader == led_last(state) and terms[-1].ended == "stopped"


def lets_it_return(state: State, assigned: tuple[int, ...], leader: int) -> list[tuple[str, int]]:
    """By which failure a leader that is away leads on, and whom it strikes: the only other member
    that runs; none is needed where no other runs."""
    if leader not in (state.registration.isr or ()):
        return []
    others = [
        r for r in assigned if r != leader and r in trusted_replicas(state) and runs(state, r)
    ]
    if len(others) > 1:
        return []
    return [("leader_stops", others[0])] if others else [("clean_election", leader)]


def is_elected_short(state: State, assigned: tuple[int, ...], last: int) -> bool:
    """Whether who led last may be elected with what it has left, while nobody leads: as a member,
    as all that may be elected, or first of all that are down. Not while another is elected at once.
    """
    trusted, anybody = trusted_replicas(state), _is_unclean_allowed(state)
    if any(r != last and (anybody or r in trusted) and runs(state, r) for r in assigned):
        return False
    return last in (state.registration.isr or ()) or leads_on_empty(state, assigned, last)


def _is_unclean_allowed(state: State) -> bool:
    """By what is set, else by the release's default."""
    behaviour, unclean = state.behaviour(), state.settings.unclean_leader_election
    return (
        bool(behaviour is None or behaviour.unclean_leader_election) if unclean is None else unclean
    )


def election_of(trusted: set[int], replica: int) -> str:
    return "clean_election" if replica in trusted else "unclean_election"


def kind_of_election(state: State) -> str:
    """The failure's word for how the present leader was elected."""
    unclean = state.history.terms[-1].election_kind == "unclean"
    return "unclean_election" if unclean else "clean_election"


def last_members(state: State) -> set[int]:
    return set(state.registration.last_members or ())


def are_few(state: State, members: set[int]) -> bool:
    """Whether an ISR of these is below min.insync.replicas."""
    minimum = min(
        state.settings.min_insync_replicas or 1, len(state.settings.assigned_replicas or ())
    )
    return 0 < len(members) < minimum


def runs(state: State, replica: int) -> bool:
    return not (_is_down(state, replica) or has_crashed(state, replica))


def has_crashed(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return known is not None and known.crashed


def _is_down(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return known is not None and known.stopped is True
