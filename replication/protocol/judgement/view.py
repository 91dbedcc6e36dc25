"""What every invariant looks at: the state, the log that counts, and what the histories answer."""

from dataclasses import dataclass, field

from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.declared_gaps import Gaps, declared_gaps
from replication.protocol.judgement.divergence import Divergence, divergences
from replication.protocol.judgement.fates import Fates, fates_of
from replication.protocol.judgement.ledger import losses
from replication.protocol.judgement.loss import Loss
from replication.protocol.judgement.reference import Reference, reference


@dataclass(slots=True)
class View:
    """One topic partition's state, with the questions that invariants share answered.

    strict: nothing is taken for granted.
    """

    state: State
    ref: Reference
    gaps: Gaps
    fates: Fates
    strict: bool = False
    losses: list[Loss] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)

    def covered(self, subject: str, replica: int | None = None) -> bool:
        """Whether complete evidence of this kind was handed over."""
        return self.state.covered(subject, replica)

    def supplied(self, subject: str) -> bool:
        """Whether any evidence of this kind was handed over."""
        return any(s == subject for s, _ in self.state.coverage)


def view_of(state: State, *, strict: bool = False) -> View:
    """Asks the histories once, for all invariants."""
    ref = reference(state)
    fates = fates_of(state, strict=strict)
    view = View(state, ref, declared_gaps(state), fates, strict)
    if not state.settings.deleted:
        view.losses = losses(fates)
    view.divergences = divergences(state, ref)
    return view
