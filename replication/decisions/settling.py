"""What would decide between candidates: the artefacts that tell their open histories apart."""

from replication.decisions.candidates import Outlook
from replication.protocol.judgement.settling import still_to_get
from replication.protocol.judgement.two_histories import (
    ACKNOWLEDGEMENTS,
    ASSIGNMENT,
    CONSUMPTIONS,
    CONTROLLER,
)


def settled_by(outlook: Outlook) -> list[str]:
    """What is missing of the brokers whose logs the open histories disagree on, then the rest."""
    line, found = outlook.line, list[str]()
    if line.assigned is None:
        found.append(ASSIGNMENT)
    apart: set[int] = set()
    for stretch in outlook.open:
        for number, place in stretch.admitted.run.place.items():
            held = {bool(at.records[place]) for at in stretch.admitted.ends}
            if len(held) > 1 and number >= 0:
                apart.add(number)
    for number in [*sorted(apart), *(r for r in line.replicas if r not in apart)]:
        if number < 0:
            continue
        if number in line.not_captured:
            found.append(f"the log directory of broker {number}")
        if number not in line.covered:
            found.append(f"the broker log of broker {number}")
    if any(w.unnamed or w.shown or not w.recorded for w in line.windows) or line.ends_early:
        found.append(CONTROLLER)
    found.append(CONSUMPTIONS if line.acks_covered else ACKNOWLEDGEMENTS)
    return still_to_get(outlook.state, found)
