"""What every prediction needs: the rules' version, the terms, and how a step is found excluded."""

from replication.protocol.ground.events import Event
from replication.protocol.ground.held_steps import Channel, Expectation, Place, Term
from replication.protocol.ground.leader_epoch_cache import EpochCache
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.ground.versions import Behaviour

NAME = "version_conformance"
# How many leader epochs back lines of a slow clock may still be read.
LEADER_EPOCHS_KEPT = 4
# How many of a leader's high watermarks, and of its log ends, are kept to hold followers against.
KEPT = 16
# How many decisions may wait for lines of other brokers.
OPEN_LIMIT = 2_000
# By what a step is about: the reason, of those in unforetold.py, for which it is not foretold yet.
WAITS_FOR = {
    "high_watermark": "leaders_line_to_come",
    "cut": "leader_not_known",
    "passed": "isr_to_come",
    "late": "isr_to_come",
    "join": "epoch_goes_on",
    "fetch": "unfenced",
}


def behaviour_of(state: State, *brokers: int) -> Behaviour | None:
    """The rules to hold the first broker against; None where they, or steps, are not known."""
    if not state.conformance.traced.issuperset(brokers):
        return None
    return state.behaviour(brokers[0])


def exclude(
    state: State, event: Event, rule: str, what: str, expected: object, observed: object
) -> None:
    """Notes a step that the rule of this name does not allow."""
    state.refute(NAME, event, worded(rule, what, expected, observed))


def worded(rule: str, what: str, expected: object, observed: object) -> str:
    """A finding in words: what happened, what the rule expects, what was observed."""
    return f"{what}: {rule} gives {expected}, observed {observed}"


def wait(state: State, expectation: Expectation, place: Place | None) -> None:
    """Keeps a step that lines still to come may explain, or exclude."""
    waiting = state.conformance.open
    if len(waiting) < OPEN_LIMIT:
        expectation.place = place
        waiting.append(expectation)
    else:
        give_up(state, expectation)


def refute_by(state: State, waiting: Expectation) -> None:
    """Nothing explained the step that waited."""
    state.refute_by(NAME, waiting.summary, (waiting.event_id, waiting.summary, waiting.place))


def miss(state: State, event_id: str, what: str, reason: str) -> None:
    """Counts a change that was not foretold though no rule excludes it; reasons: unforetold.py."""
    counts = state.conformance.missed
    counts[reason] = counts.get(reason, 0) + 1
    misses = state.conformance.unpredicted
    if len(misses) < KEPT:
        misses.append((event_id, what, reason))


def give_up(state: State, waiting: Expectation) -> None:
    """What the step waited for will not come any more."""
    miss(state, waiting.event_id, waiting.summary, WAITS_FOR[waiting.about])


def miss_fetches(state: State, channel: Channel) -> None:
    """The fetches of a channel that no log end has matched will not be foretold any more."""
    for offset, event_id, _, repeated in channel.fetches:
        if not repeated:
            miss(state, event_id, f"fetch of {channel.replica} at {offset}", "out_of_step")


def term_of(state: State, leader_epoch: int) -> Term | None:
    """What is kept of a leader epoch; None for one that is long past."""
    terms = state.conformance.terms
    known = terms.get(leader_epoch)
    if known is not None:
        return known
    if len(terms) >= LEADER_EPOCHS_KEPT:
        oldest = min(terms)
        if leader_epoch < oldest:
            return None
        _close(state, oldest)
    made = terms[leader_epoch] = Term()
    return made


def _close(state: State, leader_epoch: int) -> None:
    """Decides what is left of an epoch, and forgets it."""
    held = state.conformance
    for waiting in held.open:
        if waiting.leader_epoch == leader_epoch:
            (refute_by if is_excluded(state, waiting) else give_up)(state, waiting)
    for channel in held.channels:
        if channel.leader_epoch == leader_epoch:
            miss_fetches(state, channel)
    held.open = [x for x in held.open if x.leader_epoch != leader_epoch]
    held.channels = [c for c in held.channels if c.leader_epoch != leader_epoch]
    del held.terms[leader_epoch]


def is_excluded(state: State, waiting: Expectation) -> bool:
    """Whether nothing seen by now explains the step.

    high_watermark: a follower's, that its leader has gone past and never had. passed, late: a
    leader's that left an ISR member behind, or stood still though all held more, unless the ISR
    was another at some time of this leadership. join: the leader's lines have gone on to another
    epoch, or ended, and the replica never came far enough. fetch: its leader cannot have taken it
    in an epoch before, while an unfenced follower had heard of this one.
    """
    terms = state.conformance.terms
    term = terms.get(waiting.leader_epoch)
    if term is None:
        return False
    if waiting.about == "passed":
        return term.members is not None and waiting.replica in term.members
    if waiting.about == "late":
        known = term.least is not None and term.least >= waiting.value
        return known and not set(waiting.others) & set(term.ever)
    if waiting.about == "high_watermark":
        return _has_passed(state, waiting, term)
    if waiting.about == "fetch":
        return is_fenced(state, waiting.replica, term.leader) or not _was_before(state, waiting)
    if waiting.about == "join":
        return waiting.replica not in term.qualified and _is_past(state, waiting.leader_epoch)
    return False


def _was_before(state: State, waiting: Expectation) -> bool:
    """Whether a fetch may have come before the first one that this epoch saw of the follower, to
    the same leader in an epoch before: all lines of one leader are in its own order."""
    terms = state.conformance.terms
    term = terms[waiting.leader_epoch]
    if term.asked_first.get(waiting.replica, -1) < waiting.log_end_offset:
        return False
    return any(
        r.leader == term.leader and r.furthest(waiting.replica) >= waiting.value
        for leader_epoch, r in terms.items()
        if leader_epoch < waiting.leader_epoch
    )


def _has_passed(state: State, waiting: Expectation, term: Term) -> bool:
    """Whether the leader's high watermark has gone past one that it never had, in this epoch or,
    where fetches are not fenced, in those after it to which it was re-elected."""
    terms, last, leader_epoch = state.conformance.terms, term, waiting.leader_epoch
    fenced = is_fenced(state, waiting.replica, term.leader)
    while not fenced and last.whole:
        leader_epoch += 1
        later = terms.get(leader_epoch)
        if later is None or later.leader != term.leader or not later.high_watermarks:
            break
        last = later
    first, high_watermarks = term.high_watermarks, last.high_watermarks
    return (
        term.whole and last.whole and bool(first) and first[0] < waiting.value < high_watermarks[-1]
    )


def diverging_fetch_counts(flags: Behaviour) -> bool:
    """Whether a diverging fetch counts as progress, from wherever it is (KAFKA-13141)."""
    answers = flags.has("leader_answers_diverging_epoch")
    return answers and not flags.has("diverging_fetch_is_no_progress")


def takes_late_answers(flags: Behaviour) -> bool:
    """Whether a follower takes what its leader answered it in an earlier epoch (KAFKA-18991)."""
    return flags.truncation == "truncate_on_fetch" and not flags.has("late_fetch_response_dropped")


def is_fenced(state: State, *brokers: int | None) -> bool:
    """Whether these brokers only deal with each other in the same leader epoch (KIP-320)."""
    rules = [state.behaviour(b) for b in brokers or (None,)]
    return all(r is not None and r.has("fetch_carries_leader_epoch") for r in rules)


def _is_past(state: State, leader_epoch: int) -> bool:
    """Whether the epoch's leader was seen to lead in it, and its lines have gone on or ended."""
    term = state.conformance.terms[leader_epoch]
    if term.leader is None or term.start_offset is None or not term.whole:
        return False
    leader = state.replicas.get(term.leader)
    if leader is None or leader.leader_epoch is None:
        return False
    return state.ended or leader.leader_epoch > leader_epoch


def known_cache(replica: Replica) -> EpochCache | None:
    """The replica's epoch cache where every record's epoch is known, else None."""
    return replica.epoch_entries if replica.log.is_seamless() else None


def hold_append(state: State, event: Event, replica: Replica, first: int) -> None:
    """An append starts at the log's end; past it only where offsets may be missing."""
    end = replica.log.log_end_offset
    if replica.known_log_end_offset is None or first == end:
        return
    if first < end or not (state.may_be_compacted() or replica.role == "leader"):
        what = f"broker {replica.replica} appended at offset {first}"
        exclude(state, event, "append", what, f"its log end {end}", first)


def hold_high_watermark(state: State, event: Event, replica: Replica, told: int | None) -> None:
    """A change of role leaves the high watermark as it was, unless the log has begun past it.

    A follower's may have risen where its own lines of that are not printed.
    """
    had = replica.known_high_watermark
    if told is None or had is None or replica.role is None or told == had:
        return
    if replica.log.log_start_offset > had or not state.is_traced(replica.replica):
        return
    if replica.role == "follower" and told > had:
        return
    rule = "high_watermark_of_" + replica.role
    what = f"broker {replica.replica} changed its role at high watermark {told}"
    exclude(state, event, rule, what, f"the high watermark {had} that it had", told)


def hold_log_end(state: State, event: Event, replica: Replica, told: int | None, rule: str) -> None:
    """A change of role leaves the log as it was."""
    end = replica.log.log_end_offset
    if told is None or replica.known_log_end_offset is None or told == end:
        return
    what = f"broker {replica.replica} changed its role at log end {told}"
    exclude(state, event, rule, what, f"the log end {end} that it had", told)
