"""Since when one failure could cost records, and until when it could: looked at along the trace.

A failure becomes possible, and stops to be, by steps that change the leader, the ISR or
what is known of a log; appends and fetches only change how many records it would cost. So it is
looked at before and after every telling step, and what lies between two of them is seen before the
second. Hosts call `before` and `after` around `fold.apply`; the same trace gives the same answer in
all of them.
"""

from operator import attrgetter

from replication.protocol.ground.events import Event
from replication.protocol.ground.risks import Failure, Key, Risk, Run
from replication.protocol.ground.topic_partition import LENGTHENED, State
from replication.protocol.judgement.at_risk import Danger, dangers_of
from replication.protocol.judgement.who_may_lead import failures, is_away, led_last

TELLING = frozenset(
    ("partition_described", "leadership_recorded", "replica_started", "replica_stopped",
     "became_leader", "became_follower", "truncated", "replica_log_observed", "input_ended")
)  # fmt: skip
MOST_POSSIBLE = 4_096
_POSSIBLE: dict[tuple[object, ...], list[Failure]] = {}
# Of a replica, what decides what its log lacks, but for the spans of the log.
_LOG = attrgetter(
    "log", "log.cuts", "log.log_start_offset", "log.log_end_offset", "captured", "tail_known",
    "stale", "stopped", "crashed", "seen_at", "came_back_with",
)  # fmt: skip


def before(state: State, event: Event) -> None:
    """Looks at what held until now, where something was folded since the last look."""
    if event.fact.kind in TELLING:
        risks = state.risks
        if event.observed_at is not None and getattr(event.fact, "copy", "live") == "live":
            # Of other copies it is the newest record's time, which producers choose.
            risks.clock = max(event.observed_at, risks.clock or 0)
        if state.applied != risks.looked:
            _look(state)


def after(state: State, event: Event) -> None:
    """Looks at what holds from now on."""
    if event.fact.kind in TELLING:
        _look(state)
        state.risks.looked = state.applied


def key_of(state: State, danger: Danger) -> Key:
    """What tells the danger's failure from another."""
    return _key_of(state.registration.leader_epoch, danger)


def _key_of(leader_epoch: int, danger: Danger) -> Key:
    _, _, _, failure, broker, next_leader, cause, _ = danger
    return (leader_epoch, failure, broker, next_leader, cause == "unclean_election")


def since_when(state: State, danger: Danger) -> int | None:
    """Since when its failure has been possible; None where no telling step has been seen since."""
    key = key_of(state, danger)
    return next((r.since for r in state.risks.live if r.key == key), None)


def run_of(danger: Danger) -> Run:
    """What the danger would cost."""
    first, end, tier, _, _, _, cause, holders = danger
    return (first, end, tier, cause, holders)


def _look(state: State) -> None:
    """Which failures are possible, and what each would cost, unless all of it is as it was."""
    risks, notes, last = state.risks, state.risks.notes, led_last(state)
    leader_epoch = state.registration.leader_epoch
    asked = leader_epoch, _decides_failures(state, last), _decides_costs(state, last)
    if asked == notes.asked:
        return
    if notes.asked is None or asked[1] != notes.asked[1]:
        notes.possible = _failures_by(state, asked[1])
    notes.asked = asked
    costs: dict[Key, list[Run]] = {}
    for danger in dangers_of(state, notes.possible):
        costs.setdefault(_key_of(leader_epoch, danger), []).append(run_of(danger))
    possible = dict.fromkeys((leader_epoch, *failure) for failure in notes.possible)
    live: list[Risk] = []
    for risk in risks.live:
        runs = costs.get(risk.key, [])
        if risk.key in possible and (runs or not risk.runs):
            risk.runs = runs
            live.append(risk)
            del possible[risk.key]
        elif risk.runs:
            risk.until = risks.clock
            risks.past.append(risk)
    risks.live = live + [Risk(*key, risks.clock, costs.get(key, [])) for key in possible]


def _failures_by(state: State, decides: tuple[object, ...]) -> list[Failure]:
    """The failures that are possible, worked out once for whatever partition asks alike."""
    if decides not in _POSSIBLE:
        if len(_POSSIBLE) == MOST_POSSIBLE:
            _POSSIBLE.clear()
        _POSSIBLE[decides] = failures(state)
    return _POSSIBLE[decides]


def _decides_failures(state: State, last: int | None) -> tuple[object, ...]:
    """All that decides which failures are possible. last: the last leader."""
    told, settings, terms = state.registration, state.settings, state.history.terms
    return (
        last, terms[-1].election_kind if terms else None, is_away(state, last),
        told.leader, told.isr, told.eligible_leader_replicas,
        settings.assigned_replicas, settings.min_insync_replicas,
        settings.unclean_leader_election, settings.controller, settings.deleted,
        settings.kafka_version, settings.inter_broker_version,
        *[number for number, replica in state.replicas.items() if replica.stopped],
        None, *[number for number, replica in state.replicas.items() if replica.crashed],
        None, *[number for number in settings.assigned_replicas or () if state.is_traced(number)],
    )  # fmt: skip


def _decides_costs(state: State, last: int | None) -> tuple[object, ...]:
    """What tells whether a log or a promise has changed: equal only where none has.

    A log grows at its end or is cut, which it counts; of promises only the newest are lengthened.
    """
    history, replicas = state.history, state.replicas.values()
    leaders = [
        state.replicas.get(-1 if r is None else r) for r in (state.registration.leader, last)
    ]
    promises = history.commitments, history.acknowledgements, history.consumptions
    return (
        *[None if r is None else r.high_watermark for r in leaders],
        *map(_LOG, replicas), *[len(r.log.spans) for r in replicas],
        len(history.truncations), len(history.unclean_starts),
        *[p.span for made in promises for p in made[-LENGTHENED:]], *map(len, promises),
        *state.coverage.values(),
    )  # fmt: skip
