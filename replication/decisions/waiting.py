"""Who has to wait until the chosen replica leads, and whose log must not start as it is."""

from dataclasses import dataclass

from replication.decisions.candidates import Candidate, Outlook, last_known
from replication.decisions.choosing import KEEP, Choice
from replication.decisions.traps import UNCLEAN_IS_ON, Trap


@dataclass(frozen=True, slots=True)
class NotYet:
    """A broker that must not start yet, and what its start would destroy or decide."""

    broker: int
    because: str


def chosen_of(outlook: Outlook, choice: Choice) -> Candidate | None:
    """The candidate that is chosen."""
    return next((c for c in outlook.candidates if c.replica == choice.replica), None)


def apart(outlook: Outlook, choice: Choice) -> set[int]:
    """Whose log no rule is sure to cut to that of the chosen leader: with its directory it would
    follow, be in the ISR, and hold other records. Of a leader that stays, those alone that differ
    for sure: who may have cut its log has done so."""
    chosen = chosen_of(outlook, choice)
    stays = choice.advice == KEEP
    found = chosen.copies if chosen is not None else ()
    return {x.replica for x in found if x.diverging or (x.undecided and not stays)} - outlook.away


def not_yet(outlook: Outlook, choice: Choice, found: list[Trap]) -> list[NotYet]:
    """Who must not start before the choice is carried out, and why."""
    result: dict[int, str] = {}
    chosen = chosen_of(outlook, choice)
    if choice.advice == KEEP:
        return []
    last = last_known(outlook.state)
    if last is not None and last != choice.replica:
        result[last] = "its mere start would elect it: it is the last known leader"
    for copy in chosen.copies if chosen is not None else ():
        if copy.cut or copy.undecided:
            result.setdefault(
                copy.replica, "its first fetch would cut records that the chosen leader lacks"
            )
        elif copy.diverging:
            result.setdefault(
                copy.replica, "its log would stay another than the leader's: move it away first"
            )
    for n in outlook.away if chosen is not None else ():
        why = "it is to stay away until another one leads, and its directory is copied"
        result.setdefault(n, why)
    others = [c for c in outlook.candidates if c.replica != choice.replica]
    by_itself = any(t.name == UNCLEAN_IS_ON for t in found)
    for c in others:
        if c.runs or c.replica in choice.safe:
            continue
        if by_itself:
            result.setdefault(
                c.replica, "it could be elected by itself: unclean election is allowed"
            )
        elif chosen is None:
            result.setdefault(c.replica, "nothing is decided yet, and its start may elect it")
        elif c.trusted:
            result.setdefault(c.replica, "it is elected by its mere start, before the chosen one")
    return [NotYet(n, why) for n, why in sorted(result.items())]
