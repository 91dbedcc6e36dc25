"""Since when one failure could cost records, and until when it could: looked at along the trace.

A failure becomes possible, and stops to be, by steps that change who leads, who is in the ISR or
what is known of a log; appends and fetches only change how many records hang on it. So it is looked
at before and after every telling step. Whatever holds between two of them is seen before the
second. Hosts call `before` and `after` around `fold.apply`; the same trace gives the same answer
in all of them.
"""

from replication.protocol.ground.events import Event
from replication.protocol.ground.risks import Failure, Key, Risk, Risks, Run
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger, data_of, of_outlook
from replication.protocol.judgement.who_may_lead import (
    Outlook,
    failures,
    is_away,
    led_last,
    outlook,
)

TELLING = frozenset(
    ("partition_described", "leadership_recorded", "replica_started", "replica_stopped",
     "became_leader", "became_follower", "truncated", "replica_log_observed", "input_ended")
)  # fmt: skip
# Of these, what changes no log and no promise.
WORDS = frozenset(("partition_described", "leadership_recorded", "input_ended"))
# Who may lead next, and by which failures, by all that decides it: whichever partition asks.
ANSWERS = 4_096
_ANSWERS: dict[tuple[object, ...], tuple[Outlook | None, list[Failure]]] = {}


def before(state: State, event: Event) -> None:
    """Looks at what stood until now, where something was folded since the last look."""
    if event.fact.kind in TELLING:
        risks = state.risks
        if event.observed_at is not None and getattr(event.fact, "copy", "live") == "live":
            # Of other copies it is the newest record's time, which producers choose.
            risks.clock = max(event.observed_at, risks.clock or 0)
        if state.applied != risks.looked:
            _look(state, same_data=False)


def after(state: State, event: Event) -> None:
    """Looks at what stands from now on."""
    kind = event.fact.kind
    if kind in TELLING:
        _look(state, same_data=kind in WORDS)
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


def _look(state: State, *, same_data: bool) -> None:
    """Which failures are possible, and what each would cost, unless all of it is as it was at the
    last look. same_data: it is known that logs and promises are."""
    notes, last = state.risks.notes, led_last(state)
    changed = _ask(state, last)
    if changed or not same_data or notes.data is None:
        changed |= _note_data(state, last)
    if not changed:
        return
    runs: dict[Key, list[Run]] = {}
    if notes.possible:
        for danger in of_outlook(state, notes.seen, notes.dangers):
            runs.setdefault(key_of(state, danger), []).append(run_of(danger))
    if runs or notes.taken_over is not notes.possible:
        _take_over(state.risks, runs)


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
            _forget(risks.known, risk)
    still = {risk.key for risk in notes.live}
    new = [Risk(*key, clock, runs.get(key, [])) for key in possible if key not in still]
    risks.known += new
    notes.live += new
    # As long as the same failures are possible and none costs anything, all of it stays as it is.
    notes.taken_over = None if runs else possible


def _forget(known: list[Risk], risk: Risk) -> None:
    """Takes out a risk, which is one of the last."""
    for place in range(len(known) - 1, -1, -1):
        if known[place] is risk:
            del known[place]
            return


def _note_data(state: State, last: int | None) -> bool:
    """Whether any log or promise has changed since this was asked last, or which log counts."""
    notes, data = state.risks.notes, data_of(state, last)
    if data == notes.data:
        return False
    notes.data, notes.dangers = data, {}
    return True


def _ask(state: State, last: int | None) -> bool:
    """Who may lead next, and by which failures; worked out once for the same leader, ISR, ..;
    whether any of it has changed.

    Of any step: a follower's line may be the first word of a leader, an append that it began.
    """
    notes, leader_epoch = state.risks.notes, state.registration.leader_epoch
    asked = _asked(state, last)
    if (leader_epoch, asked) == notes.asked:
        return False
    if asked not in _ANSWERS:
        if len(_ANSWERS) == ANSWERS:
            _ANSWERS.clear()
        seen = outlook(state)
        _ANSWERS[asked] = seen, failures(state, seen)
    notes.asked = (leader_epoch, asked)
    notes.seen, possible = _ANSWERS[asked]
    notes.possible = [(leader_epoch, *failure) for failure in possible]
    return True


def _asked(state: State, last: int | None) -> tuple[object, ...]:
    """All that `outlook` and `failures` ask of the state."""
    registration, settings, terms = state.registration, state.settings, state.history.terms
    return (
        last, terms[-1].election_kind if terms else None, is_away(state),
        registration.leader, registration.isr, registration.eligible_leader_replicas,
        settings.assigned_replicas, settings.min_insync_replicas,
        settings.unclean_leader_election, settings.controller, settings.deleted,
        settings.kafka_version, settings.inter_broker_version,
        *[number for number, replica in state.replicas.items() if replica.stopped],
        None, *[number for number, replica in state.replicas.items() if replica.crashed],
        None, *[number for number in settings.assigned_replicas or () if state.is_traced(number)],
    )  # fmt: skip


def run_of(danger: Danger) -> Run:
    """What the danger would cost."""
    return (
        danger.first_offset, danger.end_offset, danger.tier, danger.cause, danger.holders,
        danger.ends_when,
    )  # fmt: skip
