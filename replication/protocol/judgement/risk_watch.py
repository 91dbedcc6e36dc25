"""Since when one failure could cost records, and until when it could: looked at along the trace.

A failure becomes possible, and stops to be, by steps that change who leads, who is in the ISR or
what is known of a log; appends and fetches only change how many records hang on it. So it is looked
at before and after every telling step. Whatever holds between two of them is seen before the
second. Hosts call `before` and `after` around `fold.apply`; the same trace gives the same answer
in all of them.
"""

from replication.protocol.ground.events import Event
from replication.protocol.ground.risks import Key, Risk, Risks, Run
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger, data_of, failures, of_outlook, outlook

TELLING = frozenset(
    ("partition_described", "leadership_recorded", "replica_started", "replica_stopped",
     "became_leader", "became_follower", "truncated", "replica_log_observed", "input_ended")
)  # fmt: skip


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
    """Looks again, unless all that a look rests on is as it was at the last one."""
    risks, terms = state.risks, state.history.terms
    asked, data = _asked(state), data_of(state)
    rests_on = (asked, data, len(terms), terms[-1].leader if terms else None)
    if rests_on == risks.notes.rests_on:
        return
    risks.notes.rests_on = rests_on
    _ask(state, asked)
    runs: dict[Key, list[Run]] = {}
    for danger in of_outlook(state, risks.notes.seen, data) if risks.notes.possible else []:
        runs.setdefault(key_of(state, danger), []).append(run_of(danger))
    _take_over(risks, runs)


def _take_over(risks: Risks, runs: dict[Key, list[Run]]) -> None:
    """Which of the known risks go on, by what they would cost now, which are over, which begin."""
    notes, possible, clock = risks.notes, risks.notes.possible, risks.clock
    before = [r for r in risks.known if not r.over] if notes.live is None else notes.live
    notes.live = []
    for risk in before:
        found = runs.get(risk.key, [])
        if risk.key in possible and (found or not risk.runs):
            risk.runs = found
            notes.live.append(risk)
        elif risk.runs:
            risk.over, risk.until = True, clock
        else:
            risks.known = [r for r in risks.known if r is not risk]
    still = {risk.key for risk in notes.live}
    new = [Risk(*key, clock, runs.get(key, [])) for key in possible if key not in still]
    risks.known += new
    notes.live += new


def _ask(state: State, asked: tuple[object, ...]) -> None:
    """Who may lead next, and by which failures: worked out anew where that may have changed."""
    notes = state.risks.notes
    if asked != notes.asked:
        seen = outlook(state)
        leader_epoch = state.registration.leader_epoch
        notes.possible = [(leader_epoch, *failure) for failure in failures(state, seen)]
        notes.asked, notes.seen = asked, seen


def _asked(state: State) -> tuple[object, ...]:
    """All that `outlook` and `failures` ask of the state."""
    registration, settings = state.registration, state.settings
    return (
        registration.leader, registration.leader_epoch, registration.isr,
        registration.eligible_leader_replicas, settings.assigned_replicas,
        settings.min_insync_replicas, settings.unclean_leader_election, settings.controller,
        settings.deleted, settings.kafka_version, settings.inter_broker_version,
        [(number, r.stopped) for number, r in state.replicas.items()],
    )  # fmt: skip


def run_of(danger: Danger) -> Run:
    """What the danger would cost."""
    return (
        danger.first_offset, danger.end_offset, danger.tier, danger.cause, danger.holders,
        danger.ends_when,
    )  # fmt: skip
