"""Where a follower cuts its log, by the truncation rule of its version and its leader's cache."""

from replication.protocol.folding.conformance.expected import (
    exclude,
    give_up,
    known_cache,
    refute_by,
    takes_late_answers,
    wait,
    worded,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.held_steps import Expectation, Term
from replication.protocol.ground.leader_epoch_cache import (
    EpochCache,
    as_asked,
    end_offset_for_epoch,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.topic_partition import Derived, Replica, State, place_of
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import truncate_on_fetch
from replication.protocol.rules.truncate_to_high_watermark import Cut, truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset

# Reasons under which a follower cuts because of its leader, and not because of offsets alone.
BY_LEADER = ("high_watermark", "leader_epoch", "diverging_epoch")


def hold(
    state: State, event: ev.Event, fact: ev.Truncated, follower: Replica, flags: Behaviour
) -> None:
    """Holds one cut (one round of it) against the rule; waits for a leader not yet read."""
    target, end = fact.to_offset, follower.log.log_end_offset
    if target is None or follower.leader_epoch is None:
        return
    if fact.reason not in BY_LEADER or follower.known_log_end_offset is None:
        return
    high_watermark = follower.high_watermark
    what = f"broker {follower.replica} truncated its log from {end}"
    if target >= end:
        _hold_no_cut(state, event, follower, what, target)
        return
    cache = known_cache(follower)
    by_high_watermark = flags.truncation == "truncate_to_high_watermark" or cache == ()
    if by_high_watermark:
        _hold_by_high_watermark(state, event, what, follower, target)
        return
    if cache is None or (fact.reason == "high_watermark" and target == high_watermark):
        # The fallback where the leader does not know the epoch asked for.
        return
    term = state.conformance.terms.get(follower.leader_epoch)
    summary = worded(flags.truncation, what, "another offset by the leader's epochs", target)
    told = (
        follower.leader_epoch,
        follower.replica,
        target,
        end,
        event.event_id,
        summary,
        None,
        cache,
    )
    waiting = Expectation("cut", flags.truncation, *told)
    cut = None if term is None else _allowed(state, term, waiting, high_watermark or 0, flags)
    if term is None or term.epoch_entries is None or cut is None:
        wait(state, waiting, place_of(event))
        return
    if target in cut or _may_be_late(state, term, flags):
        state.conformance.predicted += 1
    else:
        exclude(state, event, flags.truncation, what, _either(cut), target)


def _hold_no_cut(state: State, event: ev.Event, follower: Replica, what: str, target: int) -> None:
    """A line without effect is lawful where the rule cuts nothing."""
    cut = derived_cut(state, follower)
    if cut is not None and target == follower.log.log_end_offset:
        exclude(state, event, cut.rule, what, cut.offset, target)


def derived_cut(state: State, follower: Replica) -> Derived | None:
    """Where the rule makes a follower cut its log, though no line tells that it did.

    None where it cuts nothing, where a line tells of a cut under this leader, or where it hangs on
    what is not known. Rounds of asking the leader come to rest there.
    """
    flags, leader_epoch = state.behaviour(follower.replica), follower.leader_epoch
    if flags is None or leader_epoch is None or follower.role != "follower":
        return None
    told = [t for t in state.history.truncations if t.replica == follower.replica]
    if any(t.term_epoch == leader_epoch for t in told):
        return None
    end = follower.log.log_end_offset
    if flags.truncation == "truncate_to_high_watermark":
        # Of an untraced replica the high watermark is a lower bound alone.
        to = follower.known_high_watermark if state.is_traced(follower.replica) else None
        because = "its high watermark was there when it began to follow"
    else:
        to = _rest(state, follower, flags)
        because = f"the leader of epoch {leader_epoch} has other leader epochs from there on"
    if to is None or to >= end:
        return None
    return Derived("truncation", follower.replica, to, leader_epoch, flags.truncation, because)


def _rest(state: State, follower: Replica, flags: Behaviour) -> int | None:
    """Where rounds of asking the leader whom it follows come to rest, by what is known of it."""
    cache = known_cache(follower)
    asked = latest_epoch(cache) if cache else None
    if not cache or asked is None or asked >= (follower.leader_epoch or 0):
        return None
    found = _leaders_cache(state, follower.leader_epoch or 0)
    if found is None:
        return None
    entries, start = found
    return comes_to_rest(cache, follower.log.log_end_offset, entries, start, flags)


def _leaders_cache(state: State, leader_epoch: int) -> tuple[EpochCache, int] | None:
    """The epoch cache and the log end with which the leader of an epoch began, with that epoch."""
    terms = [t for t in state.history.terms if t.leader_epoch == leader_epoch]
    if len(terms) != 1 or terms[0].start_offset is None:
        return None
    term, start = state.conformance.terms.get(leader_epoch), terms[0].start_offset
    entries = None if term is None else term.epoch_entries
    if entries is None:
        leader = state.replicas.get(terms[0].leader)
        entries = None if leader is None else known_cache(leader)
    if entries is None:
        return None
    before = tuple(e for e in entries if e.leader_epoch < leader_epoch and e.start_offset < start)
    return (*before, EpochEntry(leader_epoch, start)), start


def comes_to_rest(
    cache: EpochCache, end: int, leaders: EpochCache, leader_end: int, flags: Behaviour
) -> int:
    """Where rounds of asking the leader for the end of the latest own epoch come to rest."""
    while cache:
        latest = latest_epoch(cache)
        answer = as_asked(end_offset_for_epoch(leaders, latest, leader_end, flags), flags)
        if answer.end_offset is None:
            return end
        if not flags.has("truncates_by_common_epoch"):
            return truncate_to_leader_end_offset(latest, answer.end_offset, end, end).to_offset
        cut = truncate_by_common_epoch(answer, cache, end, end, flags)
        end, kept = cut.to_offset, truncate_from_end(cache, cut.to_offset)
        if cut.finished or kept == cache:
            return end
        cache = kept
    return end


def _hold_by_high_watermark(
    state: State, event: ev.Event, what: str, follower: Replica, target: int
) -> None:
    high_watermark = follower.high_watermark
    if high_watermark is None:
        return
    if follower.known_high_watermark is None and target <= high_watermark:
        # The checkpoint that a crash left may be of any time before.
        state.conformance.predicted += 1
        return
    cut = truncate_to_high_watermark(high_watermark)
    if cut.to_offset == target:
        state.conformance.predicted += 1
    else:
        exclude(state, event, cut.rule, what, cut.to_offset, target)


def _either(offsets: frozenset[int]) -> str:
    return " or ".join(str(o) for o in sorted(offsets))


def settle(state: State, leader_epoch: int) -> None:
    """The leader of this epoch has been read: decides the cuts that waited for it."""
    held = state.conformance
    term = held.terms.get(leader_epoch)
    if term is None:
        return
    kept = []
    for waiting in held.open:
        flags = state.behaviour(waiting.replica)
        if waiting.about != "cut" or waiting.leader_epoch != leader_epoch or flags is None:
            kept.append(waiting)
            continue
        cut = _allowed(state, term, waiting, 0, flags)
        if cut is None:
            give_up(state, waiting)
        elif waiting.value in cut or _may_be_late(state, term, flags):
            held.predicted += 1
        else:
            refute_by(state, waiting)
    held.open = kept


def _may_be_late(state: State, term: Term, flags: Behaviour) -> bool:
    """Whether an answer that the same leader gave in an earlier epoch may cut."""
    if not takes_late_answers(flags):
        return False
    others = [r for r in state.conformance.terms.values() if r is not term]
    return any(r.leader == term.leader for r in others)


def _start(state: State, term: Term) -> int:
    """Where the leader's log starts by now: what lies before has left its cache too."""
    leader = None if term.leader is None else state.replicas.get(term.leader)
    return 0 if leader is None else leader.log.log_start_offset


def _allowed(
    state: State, term: Term, waiting: Expectation, high_watermark: int, flags: Behaviour
) -> frozenset[int] | None:
    """Where one round may cut; None where it hangs on how far the leader's log went by then.

    The leader answers from its cache as it took over, or as its first append has left it, by the
    rules of its own release.
    """
    log_start_offset, answers = _start(state, term), state.behaviour(term.leader) or flags
    entries, start = term.epoch_entries, term.start_offset
    cache, end = waiting.epoch_entries, waiting.log_end_offset
    asked = latest_epoch(cache)
    if entries is None or start is None or asked is None or asked >= waiting.leader_epoch:
        return None
    caches = [entries]
    if not entries or entries[-1].leader_epoch < waiting.leader_epoch:
        from_append = type(cache[0])(waiting.leader_epoch, start)
        caches.append((*entries, from_append))
    if log_start_offset:
        caches += [truncate_from_start(c, log_start_offset) for c in caches]
    offsets = set()
    for own in _possible_caches(cache, end, flags):
        for leaders in caches:
            told = end_offset_for_epoch(leaders, latest_epoch(own), start, answers)
            cut = _cut(as_asked(told, flags), own, end, high_watermark, flags)
            if cut.rule == "truncate_to_high_watermark":
                return None
            offsets.add(min(cut.to_offset, end))
    return frozenset(offsets)


def _possible_caches(cache: EpochCache, end: int, flags: Behaviour) -> list[EpochCache]:
    """A round that cuts nothing, of which no line tells, drops epochs without records."""
    result = [cache]
    if flags.has("empty_epoch_dropped_at_log_end"):
        kept = truncate_from_end(cache, end)
        if kept and kept != cache:
            result.append(kept)
    return result


def _cut(
    answer: EpochEndOffset, cache: EpochCache, end: int, high_watermark: int, flags: Behaviour
) -> Cut:
    if flags.truncation == "truncate_to_leader_end_offset":
        return truncate_to_leader_end_offset(
            latest_epoch(cache), answer.end_offset, end, high_watermark
        )
    if flags.truncation == "truncate_on_fetch":
        return truncate_on_fetch(answer, cache, end, high_watermark, flags)
    return truncate_by_common_epoch(answer, cache, end, high_watermark, flags)
