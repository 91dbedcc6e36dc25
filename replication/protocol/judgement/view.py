"""What every invariant looks at: the state, the log that counts, and who went where."""

from dataclasses import dataclass, field, replace

from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.ground.verdict import Step
from replication.protocol.judgement.absence import Absence, Doubt
from replication.protocol.judgement.committed_at_once import committed_at_once
from replication.protocol.judgement.declared_gaps import Gaps, declared_gaps, stands
from replication.protocol.judgement.divergence import Divergence, divergences
from replication.protocol.judgement.ledger import Loss, losses, may_be_about
from replication.protocol.judgement.reference import Reference, reference
from replication.protocol.judgement.survival import fate


@dataclass(slots=True)
class View:
    """One topic partition's state, with the questions that invariants share answered."""

    state: State
    ref: Reference
    gaps: Gaps
    absences: list[Absence] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)

    def covered(self, subject: str, replica: int | None = None) -> bool:
        """Whether complete evidence of this kind was handed over."""
        return self.state.covered(subject, replica)

    def supplied(self, subject: str) -> bool:
        """Whether any evidence of this kind was handed over."""
        return any(s == subject for s, _ in self.state.coverage)

    def rows_of(self, *how: str, by_valid_leaders: bool = False) -> list[Loss]:
        """The losses that may be of records promised in one of these ways."""
        promised = [a for a in self.absences if a.promise.how in how]
        if by_valid_leaders:
            promised = [a for a in promised if not a.perhaps_by_zombie]
        named = {id(a.promise) for a in promised}
        unidentified = [a for a in promised if None in a.promise.span[2:]]
        return [
            x
            for x in self.losses
            if any(id(part.promise) in named for part in x.absences)
            or any(may_be_about(x, a) for a in unidentified)
        ]

    def doubts_of(self, *how: str) -> list[Doubt]:
        """The doubts about promises made in one of these ways."""
        return [d for d in self.doubts if d.promise.how in how]


def view_of(state: State, ref: Reference | None = None) -> View:
    """Decides the fate of every promise once, for all invariants. ref: the log that counts, where
    that is not for the evidence to say."""
    ref = ref or reference(state)
    gaps = declared_gaps(state)
    view = View(state, ref, gaps)
    history = state.history
    promises: list[Promise] = history.commitments + history.acknowledgements + history.consumptions
    if state.settings.deleted:
        # A deleted topic took its records with it: that is no loss, whatever the copies show.
        promises = []
    for promise in promises:
        absences, doubts = fate(state, ref, promise)
        view.doubts += doubts
        for absence in absences:
            if not gaps or stands(gaps, state, ref, absence):
                view.absences.append(_if_committed_at_once(state, ref, absence))
            else:
                view.doubts.append(_in_doubt(absence))
    view.losses = losses(state, ref, view.absences, gaps)
    told_and_in_doubt = bool(view.doubts_of("consumed", "acks_all", "acks_1"))
    for loss in view.losses:
        loss.more = loss.more or told_and_in_doubt
    view.divergences = divergences(state, ref)
    return view


def _if_committed_at_once(state: State, ref: Reference, absence: Absence) -> Absence:
    """The absence, as one of committed records where its leader had committed what it answered."""
    term = committed_at_once(state, ref, absence)
    if term is None:
        return absence
    because = (
        f"broker {term.leader} was alone in the ISR when it took epoch {term.leader_epoch}, and "
        "nobody followed it: what it answered for it had committed"
    )
    steps = [*absence.steps, Step(term.event_id, because)]
    return replace(absence, steps=steps, was_committed=True)


def _in_doubt(absence: Absence) -> Doubt:
    """An absence that steps which are declared missing could undo."""
    return Doubt(
        absence.first_offset,
        absence.end_offset,
        absence.promise,
        "it seems lost, but steps that are declared missing could tell otherwise",
        "the evidence that is declared missing",
    )


def uncaptured(state: State) -> list[int]:
    """Assigned replicas whose log was not handed over."""
    return [r for r in _assigned(state) if not state.log_is_known(state.replicas.get(r))]


def assignment_is_known(state: State) -> bool:
    """Whether anything names the brokers that have a replica."""
    return bool(_assigned(state))


def _assigned(state: State) -> tuple[int, ...]:
    assigned = state.settings.assigned_replicas or tuple(sorted(state.ever_assigned))
    if assigned:
        return assigned
    # Nothing names the assignment, but a tool may have listed who has a replica.
    told = state.coverage.items()
    listed = [r for (s, r), (_, detail) in told if s == "log_directory" and detail]
    return tuple(sorted(r for r in listed if r is not None))
