"""Since when one failure could cost records, and until when it could: looked at along the trace.

A failure becomes possible, and stops to be, by steps that change who leads, who is in the ISR or
what is known of a log; appends and fetches only change how many records hang on it. So it is looked
at before and after every telling step. Whatever holds between two of them is seen before the
second. Hosts call `before` and `after` around `fold.apply`; the same trace gives the same answer
in all of them.
"""

from replication.protocol.ground.events import Event
from replication.protocol.ground.risks import Risk, Run
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger, failures, of_outlook, outlook

TELLING = frozenset(
    ("partition_described", "leadership_recorded", "replica_started", "replica_stopped",
     "became_leader", "became_follower", "truncated", "replica_log_observed", "input_ended")
)  # fmt: skip
Key = tuple[int, str, int, int | None, bool]


def before(state: State, event: Event) -> None:
    """Looks at what stood until now, where something was folded since the last look."""
    if event.fact.kind in TELLING:
        if event.observed_at is not None and getattr(event.fact, "copy", "live") == "live":
            # Of other copies it is the newest record's time, which producers choose.
            state.risks.clock = max(event.observed_at, state.risks.clock or 0)
        if state.applied != state.risks.looked:
            _look(state)


def after(state: State, event: Event) -> None:
    """Looks at what stands from now on."""
    if event.fact.kind in TELLING:
        _look(state)
        state.risks.looked = state.applied


def key_of(state: State, danger: Danger) -> Key:
    """What tells the danger's failure from another."""
    leader_epoch = state.registration.leader_epoch
    unclean = danger.cause == "unclean_election"
    return (leader_epoch, danger.failure, danger.broker, danger.next_leader, unclean)


def since_when(state: State, danger: Danger) -> int | None:
    """Since when its failure has been possible; None where no telling step has been seen since."""
    key = key_of(state, danger)
    return next((r.since for r in state.risks.known if not r.over and r.key == key), None)


def _look(state: State) -> None:
    risks, clock = state.risks, state.risks.clock
    leader_epoch, seen = state.registration.leader_epoch, outlook(state)
    possible: list[Key] = [(leader_epoch, *failure) for failure in failures(state, seen)]
    runs: dict[Key, list[Run]] = {}
    for danger in of_outlook(state, seen) if possible else []:
        runs.setdefault(key_of(state, danger), []).append(run_of(danger))
    kept, still = [], set()
    for risk in risks.known:
        found = runs.get(risk.key, [])
        goes_on = not risk.over and risk.key in possible and (bool(found) or not risk.runs)
        if goes_on:
            risk.runs = found
            still.add(risk.key)
        elif not risk.over and risk.runs:
            risk.over, risk.until = True, clock
        if goes_on or risk.over:
            kept.append(risk)
    kept += [Risk(*key, clock, runs.get(key, [])) for key in possible if key not in still]
    risks.known = kept


def run_of(danger: Danger) -> Run:
    """What the danger would cost."""
    return (
        danger.first_offset, danger.end_offset, danger.tier, danger.cause, danger.holders,
        danger.ends_when,
    )  # fmt: skip
