"""A follower's side: what it appends, which high watermark it takes over, where it cuts."""

from replication.protocol.folding.conformance import channels, told_lines, truncations
from replication.protocol.folding.conformance.expected import (
    behaviour_of,
    exclude,
    hold_append,
    hold_high_watermark,
    hold_log_end,
    wait,
    worded,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.held_steps import Expectation, Term
from replication.protocol.ground.topic_partition import Replica, State, place_of
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower


def became_follower(state: State, event: ev.Event, fact: ev.BecameFollower) -> None:
    """A new follower's log is what it was; from now on it fetches from this epoch's leader."""
    replica = state.replicas.get(fact.replica)
    if replica is None or behaviour_of(state, fact.replica) is None:
        return
    hold_log_end(state, event, replica, fact.log_end_offset, "when_to_truncate")
    hold_high_watermark(state, event, replica, fact.high_watermark)
    end = fact.log_end_offset
    end = replica.log.log_end_offset if end is None else end
    if replica.leader_epoch != fact.leader_epoch or replica.led_in_epoch:
        channels.begin(state, replica, fact.leader, fact.leader_epoch, end)
    elif end < replica.log.log_end_offset:
        channels.fell_back(state, replica)


def follower_appended(state: State, event: ev.Event, fact: ev.FollowerAppended) -> None:
    """A follower appends at its log's end what it fetched there."""
    replica = state.replicas.get(fact.replica)
    if replica is None or behaviour_of(state, fact.replica) is None:
        return
    cut = None
    if fact.first_offset < replica.log.log_end_offset:
        cut = truncations.derived_cut(state, replica)
    if cut is not None and cut.offset == fact.first_offset:
        # Only the line that tells of the cut is missing.
        state.history.derived.append(cut)
        channels.fell_back(state, replica)
        return
    hold_append(state, event, replica, fact.first_offset)
    if replica.role != "follower" or replica.leader_epoch is None:
        return
    term = state.conformance.terms.get(replica.leader_epoch)
    leader = None if term is None or term.leader is None else term.leader
    if leader is not None and leader not in state.conformance.traced:
        return
    # A line without an epoch is one response; facts with epochs may be several for one.
    needed = fact.leader_epoch is None or replica.answered
    replica.answered = False
    channels.appended(state, event, replica, fact.end_offset, needed)


def fetch_answered(state: State, event: ev.Event, fact: ev.FetchAnswered) -> None:
    """A response carries a high watermark that its leader had."""
    replica = state.replicas.get(fact.replica)
    if replica is None:
        return
    replica.answered = True
    if fact.high_watermark is None or fact.error is not None or replica.role != "follower":
        return
    flags = behaviour_of(state, fact.replica)
    if flags is not None:
        _hold_high_watermark(state, event, replica, fact.high_watermark, None, flags)


def high_watermark_advanced(
    state: State, event: ev.Event, fact: ev.HighWatermarkAdvanced, replica: Replica
) -> None:
    """A follower's high watermark is one that its leader had, up to its own log's end."""
    high_watermark = fact.high_watermark
    if high_watermark == replica.high_watermark or replica.leader_epoch is None:
        return
    flags = behaviour_of(state, fact.replica)
    if flags is None or replica.known_log_end_offset is None:
        return
    end = replica.log.log_end_offset
    if replica.high_watermark is not None and high_watermark == min(replica.high_watermark, end):
        state.conformance.predicted += 1
        return
    if high_watermark > end:
        what = f"follower {fact.replica} set its high watermark"
        exclude(state, event, "high_watermark_of_follower", what, f"at most its log end {end}",
                high_watermark)  # fmt: skip
        return
    _hold_high_watermark(state, event, replica, high_watermark, end, flags)


def _hold_high_watermark(
    state: State,
    event: ev.Event,
    replica: Replica,
    high_watermark: int,
    log_end_offset: int | None,
    flags: Behaviour,
) -> None:
    """Holds a follower's high watermark (without a log end: a response's) against its leader's."""
    leader_epoch = replica.leader_epoch
    if leader_epoch is None:
        return
    held = state.conformance
    term = held.terms.get(leader_epoch)
    if term is not None and term.leader is not None and term.leader not in held.traced:
        return
    end = 1 << 62 if log_end_offset is None else log_end_offset
    counted = 0 if log_end_offset is None else 1
    start = replica.log.log_start_offset
    if (
        term is not None
        and start <= high_watermark <= end
        and high_watermark in term.high_watermarks
    ):
        held.predicted += counted
        return
    high_watermarks = _possible(state, term, flags)
    if any(
        high_watermark_of_follower(m, start, end, flags) == high_watermark for m in high_watermarks
    ):
        held.predicted += counted
        return
    what = f"follower {replica.replica} took over a high watermark"
    if log_end_offset is None:
        what = f"broker {replica.replica} was answered with a high watermark"
    seen = term.high_watermarks if term is not None else []
    summary = worded("high_watermark_of_follower", what, "one that its leader had", high_watermark)
    fenced = flags.has("fetch_carries_leader_epoch")
    between = bool(seen) and seen[0] < high_watermark < seen[-1] and _is_kept(seen, high_watermark)
    # A log that begins anew has its high watermark at its end.
    earlier = (
        start < high_watermark < end
        and term is not None
        and _is_earlier(state, term, high_watermark, flags)
    )
    if not seen or high_watermark > seen[-1] or (between and not fenced):
        told = (leader_epoch, replica.replica, high_watermark, end, event.event_id, summary)
        wait(
            state,
            Expectation("high_watermark", "high_watermark_of_follower", *told),
            place_of(event),
        )
    elif term is not None and term.whole and (between or earlier):
        near = [m for m in seen if m < high_watermark][-1:] + [
            m for m in seen if m > high_watermark
        ][:1]
        expected = " or ".join(str(m) for m in near)
        exclude(state, event, "high_watermark_of_follower", what, expected, high_watermark)
    else:
        held.predicted += counted


def _is_earlier(state: State, term: Term, high_watermark: int, flags: Behaviour) -> bool:
    """Whether a high watermark is from before the leader's epoch began, and not of that leader."""
    others = [r for r in state.conformance.terms.values() if r is not term]
    same = [r for r in others if r.leader in (None, term.leader)]
    fenced = flags.has("fetch_carries_leader_epoch") and bool(term.high_watermarks)
    return (
        fenced
        and high_watermark < term.high_watermarks[0]
        and not any(_may_have_had(r, high_watermark) for r in same)
    )


def _may_have_had(term: Term, high_watermark: int) -> bool:
    """Whether a leader may have had a high watermark in another epoch."""
    seen = term.high_watermarks
    if not term.whole or not seen or not _is_kept(seen, high_watermark):
        return True
    return high_watermark in seen


def _is_kept(seen: list[int], high_watermark: int) -> bool:
    """Whether the leader's high watermarks around this one are still kept: only the first is from
    before a gap."""
    return len(seen) < 2 or high_watermark > seen[1] or len(seen) < 8


def _possible(state: State, term: Term | None, flags: Behaviour) -> list[int]:
    """The leader's high watermarks; where fetches are not fenced, its earlier epochs' too."""
    if term is None:
        return []
    high_watermarks = term.high_watermarks
    if flags.has("fetch_carries_leader_epoch"):
        return high_watermarks
    others = [r for r in state.conformance.terms.values() if r is not term]
    return [*high_watermarks, *(m for r in others for m in r.high_watermarks)]


def truncated(state: State, event: ev.Event, fact: ev.Truncated) -> None:
    """A follower cuts where the rule says; a leader never does."""
    replica = state.replicas.get(fact.replica)
    if replica is None:
        return
    told_lines.truncated(state, event, fact, replica)
    flags = behaviour_of(state, fact.replica)
    if flags is None or replica.role != "follower" or fact.to_offset is None:
        return
    truncations.hold(state, event, fact, replica, flags)
    if fact.to_offset < replica.log.log_end_offset or fact.reason == "full":
        channels.fell_back(state, replica)
