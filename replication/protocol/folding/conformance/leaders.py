"""A leader's side: its high watermark, the fetches that move it, and who may join the ISR."""

from replication.protocol.folding.conformance import channels, told_lines, truncations
from replication.protocol.folding.conformance.expected import (
    KEPT,
    behaviour_of,
    diverging_fetch_counts,
    exclude,
    give_up,
    hold_append,
    hold_high_watermark,
    hold_log_end,
    is_excluded,
    is_fenced,
    known_cache,
    miss,
    term_of,
    wait,
    worded,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.held_steps import Expectation, Term
from replication.protocol.ground.leader_epoch_cache import truncate_from_end
from replication.protocol.ground.topic_partition import Replica, State, place_of
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.become_leader import become_leader
from replication.protocol.rules.fetch_admission import FetchTarget, FollowerFetch, fetch_admission
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.isr_expand import isr_expand
from replication.protocol.rules.produce_admission import effective_min_insync_replicas


def leadership_recorded(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    """The ISR that counts in a leader epoch; who joined it must have come far enough."""
    if fact.leader is None:
        return
    term = term_of(state, fact.leader_epoch)
    if term is None:
        return
    if fact.isr is None:
        term.members, term.least = (), 0
        return
    isr = fact.isr
    term.ever = sorted({*term.ever, *isr})
    if term.members is None or term.least is None:
        term.members, term.least = tuple(sorted(isr)), len(isr)
    else:
        term.members = tuple(r for r in term.members if r in isr)
        term.least = min(term.least, len(isr))
    if fact.election_kind is None and term.isr is not None:
        _hold_joins(state, event, fact, term)
    term.isr = isr


def _hold_joins(state: State, event: ev.Event, fact: ev.LeadershipRecorded, term: Term) -> None:
    if fact.leader is None or behaviour_of(state, fact.leader) is None:
        return
    joined = set(fact.isr or ()) - set(term.isr or ()) - {fact.leader}
    if state.ever_assigned:
        # The steps of a replica that no known assignment names are refused, its fetches too.
        joined &= state.ever_assigned
    for replica in sorted(joined):
        if replica not in term.qualified:
            what = f"broker {replica} joined the ISR of leader epoch {fact.leader_epoch}"
            summary = worded(
                "isr_expand", what, "no join before its fetch reaches the high watermark", "a join"
            )
            told = (fact.leader_epoch, replica, 0, 0, event.event_id, summary)
            wait(state, Expectation("join", "isr_expand", *told), place_of(event))


def became_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    """A leader's log is what it was; its epoch cache and high watermark are where it begins."""
    told_lines.became_leader(state, event, fact)
    replica = state.replicas.get(fact.replica)
    term = term_of(state, fact.leader_epoch)
    if replica is None:
        return
    again = replica.role == "leader" and replica.leader_epoch == fact.leader_epoch
    if term is None or again:
        return
    term.leader = fact.replica
    replica.claimed = None
    flags = behaviour_of(state, fact.replica)
    if flags is None:
        term.whole, term.high_watermarks = False, []
        return
    hold_log_end(state, event, replica, fact.log_end_offset, "become_leader")
    hold_high_watermark(state, event, replica, fact.high_watermark)
    began = fact.high_watermark if fact.high_watermark is not None else replica.high_watermark
    certain = fact.high_watermark is not None or replica.known_high_watermark is not None
    end = fact.log_end_offset
    if end is None and replica.known_log_end_offset is not None:
        end = replica.log.log_end_offset
    restarted = bool(term.high_watermarks) or term.start_offset is not None
    term.whole = certain and not restarted
    if began is None and end == 0 and not restarted:
        # Of a log made just now no line tells: a follower may be answered with 0.
        term.high_watermarks = [0]
    else:
        term.high_watermarks = [] if began is None else [*term.high_watermarks, began]
    if not restarted and end is not None:
        term.start_offset = end
        cache = known_cache(replica)
        if cache is not None:
            led = replica.role == "leader"
            cache = truncate_from_end(cache, end)
            taken = become_leader(fact.leader_epoch, end, cache, led, flags)
            term.epoch_entries = taken.epoch_entries
            truncations.settle(state, fact.leader_epoch)
    elif restarted:
        # It may have lost records since: what it answers now is not what it took over with.
        term.epoch_entries = None
    settle_high_watermarks(state, fact.leader_epoch, term)


def leader_appended(state: State, event: ev.Event, fact: ev.LeaderAppended) -> None:
    """A leader appends at its log's end, in its own epoch."""
    replica = state.replicas.get(fact.replica)
    if replica is None or behaviour_of(state, fact.replica) is None:
        return
    hold_append(state, event, replica, fact.first_offset)
    terms = state.conformance.terms
    leads = replica.role == "leader" and replica.leader_epoch is not None
    if leads and fact.leader_epoch not in (None, replica.leader_epoch):
        what = f"leader {fact.replica} stamped its records with an epoch"
        exclude(state, event, "assign", what, replica.leader_epoch, fact.leader_epoch)
    term = None if replica.leader_epoch is None else terms.get(replica.leader_epoch)
    if leads and term is not None:
        term.ends.append(fact.end_offset)
        if len(term.ends) > KEPT:
            del term.ends[: KEPT // 2]


def counts(state: State, fact: ev.FetchRequested) -> bool:
    """Whether a fetch moves what its leader knows, by the rule of admission.

    A line that tells the offset alone is printed only for a fetch that counted.
    """
    leader = state.replicas.get(fact.leader)
    if leader is None or leader.role != "leader" or fact.leader_epoch is None:
        return True
    if fact.leader not in state.conformance.traced:
        return True
    log, entries = leader.log, leader.epoch_entries
    if fact.leader_epoch == leader.leader_epoch and (
        fact.last_fetched_epoch is None
        or (entries and entries[-1].leader_epoch == fact.last_fetched_epoch)
    ):
        # Of one epoch, and of one last epoch: the offset alone decides.
        return log.log_start_offset <= fact.fetch_offset <= log.log_end_offset
    flags, sends = state.behaviour(fact.leader), state.behaviour(fact.replica)
    if flags is None or sends is None or leader.leader_epoch is None:
        return True
    fetch = FollowerFetch(
        fact.fetch_offset,
        fact.leader_epoch if sends.has("fetch_carries_leader_epoch") else None,
        fact.last_fetched_epoch,
    )
    target = FetchTarget(
        True, leader.leader_epoch, log.log_start_offset, log.log_end_offset,
        leader.epoch_entries,
    )  # fmt: skip
    return fetch_admission(fetch, target, flags).updates_follower


def fetch_requested(state: State, event: ev.Event, fact: ev.FetchRequested) -> bool:
    """A follower's fetch: what its leader's high watermark was, and may be now.

    Returns whether it moves what its leader knows.
    """
    moves = counts(state, fact)
    leader = state.replicas.get(fact.leader)
    if leader is None or leader.role != "leader" or leader.leader_epoch is None:
        return moves
    flags = behaviour_of(state, fact.leader)
    if flags is None or not moves:
        return moves
    term = term_of(state, leader.leader_epoch)
    if term is None:
        return moves
    _hold_counted(state, event, fact, leader, term, flags)
    repeated = term.asked.get(fact.replica) == fact.fetch_offset
    term.asked_first.setdefault(fact.replica, fact.fetch_offset)
    if fact.fetch_offset < term.asked.get(fact.replica, -1):
        term.asked_before[fact.replica] = term.furthest(fact.replica)
    term.asked[fact.replica] = fact.fetch_offset
    if fact.replica in state.conformance.traced:
        channels.fetched(state, event, fact, leader.leader_epoch, repeated)
    return moves


def _hold_counted(
    state: State,
    event: ev.Event,
    fact: ev.FetchRequested,
    leader: Replica,
    term: Term,
    flags: Behaviour,
) -> None:
    """Holds against the rules what a fetch that counts lets its leader know."""
    ahead = fact.fetch_offset > leader.log.log_end_offset
    if ahead and leader.known_log_end_offset is not None and not diverging_fetch_counts(flags):
        what = f"leader {fact.leader} took a fetch of broker {fact.replica} as progress"
        end = f"no offset past its log end {leader.log.log_end_offset}"
        exclude(state, event, "fetch_admission", what, end, fact.fetch_offset)
    if leader.claimed is not None:
        _explain(state, event, fact, leader, term)
    _hold_passed(state, event, fact, leader, term, flags)
    _hold_late(state, event, fact, leader, term, flags)
    if fact.replica not in term.qualified and _has_qualified(fact, leader, term, flags):
        term.qualified.append(fact.replica)
        told = ("join", leader.leader_epoch, fact.replica)
        held = state.conformance
        held.open = [x for x in held.open if (x.about, x.leader_epoch, x.replica) != told]


def _has_qualified(fact: ev.FetchRequested, leader: Replica, term: Term, flags: Behaviour) -> bool:
    """Whether the fetch lets the follower join, by a high watermark up to two moves old: lines of
    several threads may come in between."""
    seen = term.high_watermarks
    high_watermark = seen[-3] if len(seen) > 2 else seen[0] if seen else 0
    return isr_expand(fact.fetch_offset, high_watermark, term.start_offset or 0, flags)


def _explain(
    state: State, event: ev.Event, fact: ev.FetchRequested, leader: Replica, term: Term
) -> None:
    """A high watermark is where some awaited log ends: the fetch that moved it comes next."""
    claim, offset = leader.claimed, fact.fetch_offset
    ends = leader.remote_log_end_offsets
    if claim is None or offset < claim:
        return
    if offset == claim or claim in ends.values():
        leader.claimed = None
        state.conformance.predicted += 1
        return
    others = {*term.ever, *ends} - {fact.leader, fact.replica}
    if not any(ends.get(r, -1) < claim for r in others):
        _exclude_claim(state, event, leader, term)


def _exclude_claim(state: State, event: ev.Event, leader: Replica, term: Term) -> None:
    """No log that counts ended at the high watermark that the leader was seen at before."""
    claim, leader.claimed = leader.claimed, None
    if claim in term.ends:
        # Its own log's end when another thread looked: which thread prints first is timing.
        miss(state, event.event_id, f"high watermark {claim} of {leader.replica}", "printed_late")
        return
    known = sorted({*leader.remote_log_end_offsets.values(), leader.log.log_end_offset})
    what = f"leader {leader.replica} moved its high watermark"
    exclude(state, event, "high_watermark_of_leader", what, f"one of the log ends {known}", claim)


def _hold_passed(
    state: State,
    event: ev.Event,
    fact: ev.FetchRequested,
    leader: Replica,
    term: Term,
    flags: Behaviour,
) -> None:
    """A high watermark may not pass an ISR member: its next fetch tells where it was."""
    high_watermark, offset = leader.high_watermark, fact.fetch_offset
    before = leader.remote_log_end_offsets.get(fact.replica)
    if high_watermark is None or offset >= high_watermark or not term.whole:
        return
    began = term.high_watermarks[0] if len(term.high_watermarks) < KEPT // 2 else None
    if began is not None and high_watermark <= began:
        return
    if before is not None and before >= high_watermark:
        term.excused[fact.replica] = high_watermark
    if high_watermark <= term.excused.get(fact.replica, -1):
        return
    if term.members is not None and fact.replica not in term.members:
        return
    follower = RemoteReplica(before, True, True)
    current = 0 if began is None else began
    end = leader.log.log_end_offset
    allowed = high_watermark_of_leader(current, end, [follower], 1, 1, flags)
    if allowed < high_watermark:
        what = (
            f"leader {fact.leader} moved its high watermark past broker {fact.replica}, which is "
            f"in the ISR and fetched at {offset}"
        )
        summary = worded("high_watermark_of_leader", what, f"at most {offset}", high_watermark)
        told = (
            leader.leader_epoch or 0,
            fact.replica,
            high_watermark,
            end,
            event.event_id,
            summary,
        )
        wait(state, Expectation("passed", "high_watermark_of_leader", *told), place_of(event))


def _hold_late(
    state: State,
    event: ev.Event,
    fact: ev.FetchRequested,
    leader: Replica,
    term: Term,
    flags: Behaviour,
) -> None:
    """A high watermark that all replicas have passed must have moved before they fetch again."""
    high_watermark, end = leader.high_watermark, leader.log.log_end_offset
    before = leader.remote_log_end_offsets.get(fact.replica)
    if high_watermark is None or before is None or before <= high_watermark:
        return
    found = forced_high_watermark(state, leader, term, flags)
    if found is None:
        return
    forced, least, others = found
    if term.least is not None and term.least < least:
        return  # By this rule it waits: some ISR of the epoch had too few members.
    what = f"leader {fact.leader} left its high watermark where it was"
    summary = worded("high_watermark_of_leader", what, f"at least {forced}", high_watermark)
    told = (leader.leader_epoch or 0, fact.replica, least, end, event.event_id, summary)
    late = Expectation("late", "high_watermark_of_leader", *told)
    late.others = others
    if not any(x.summary == summary for x in state.conformance.open):
        wait(state, late, place_of(event))


def forced_high_watermark(
    state: State, leader: Replica, term: Term, flags: Behaviour
) -> tuple[int, int, tuple[int, ...]] | None:
    """Where a leader's high watermark must be by now, if that is further than it was seen at.

    With the least size of the ISR that this needs, and the replicas that were taken not to matter
    because no ISR of the epoch named them.
    """
    high_watermark, ends = leader.high_watermark, leader.remote_log_end_offsets
    assigned = state.settings.assigned_replicas
    if high_watermark is None or not assigned or not term.whole:
        return None
    remote = [r for r in assigned if r != leader.replica]
    awaited = [r for r in remote if r in term.ever or r in ends]
    if any(ends.get(r, -1) <= high_watermark for r in awaited):
        return None
    least = effective_min_insync_replicas(
        state.settings.min_insync_replicas or 1, len(assigned), flags
    )
    remotes = [RemoteReplica(ends[r], True, True) for r in awaited]
    end = leader.log.log_end_offset
    forced = high_watermark_of_leader(high_watermark, end, remotes, len(assigned), least, flags)
    if not flags.has("high_watermark_waits_for_min_insync_replicas"):
        least = 0
    others = tuple(r for r in remote if r not in awaited)
    return (forced, least, others) if forced > high_watermark else None


def high_watermark_advanced(
    state: State, event: ev.Event, fact: ev.HighWatermarkAdvanced, replica: Replica
) -> None:
    """A leader's high watermark is its own log end, or that of a fetch known or next to come."""
    before, high_watermark = replica.high_watermark, fact.high_watermark
    if high_watermark == before or replica.leader_epoch is None:
        return
    term = term_of(state, replica.leader_epoch)
    if term is None or behaviour_of(state, fact.replica) is None:
        return
    if before is not None and high_watermark > before:
        if replica.claimed is not None:
            _exclude_claim(state, event, replica, term)
        ends = replica.remote_log_end_offsets
        if high_watermark == replica.log.log_end_offset or high_watermark in ends.values():
            state.conformance.predicted += 1
            replica.claimed = None
        else:
            replica.claimed = high_watermark
    term.high_watermarks.append(high_watermark)
    if len(term.high_watermarks) > KEPT:
        forget_old(term.high_watermarks)
    if state.conformance.open:
        settle_high_watermarks(state, replica.leader_epoch, term)


def forget_old(high_watermarks: list[int]) -> None:
    """Keeps the last few high watermarks, and the first: where the leader began."""
    del high_watermarks[1 : KEPT // 2]


def settle_high_watermarks(state: State, leader_epoch: int, term: Term) -> None:
    """Explains followers' high watermarks that ran ahead of their leader's lines.

    Where fetches are not fenced, a follower may hear of a later epoch's before it hears of it.
    """
    held = state.conformance
    if not term.high_watermarks:
        return
    kept = []
    for waiting in held.open:
        of_it, flags = waiting.leader_epoch == leader_epoch, state.behaviour(waiting.replica)
        if waiting.about != "high_watermark" or flags is None:
            kept.append(waiting)
            continue
        if not of_it and is_fenced(state, waiting.replica, term.leader):
            kept.append(waiting)
            continue
        end = waiting.log_end_offset
        high_watermarks = term.high_watermarks
        if any(
            high_watermark_of_follower(m, 0, end, flags) == waiting.value for m in high_watermarks
        ):
            held.predicted += 1
        elif not of_it or waiting.value > high_watermarks[-1] or is_excluded(state, waiting):
            kept.append(waiting)
        else:
            give_up(state, waiting)
    held.open = kept
