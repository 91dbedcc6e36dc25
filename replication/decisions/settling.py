"""What would decide between candidates: the artefacts that tell their open histories apart."""

from replication.decisions.candidates import Outlook
from replication.protocol.judgement.questions import COMMITTED
from replication.protocol.judgement.settling import artefacts, still_to_get


def settled_by(outlook: Outlook) -> list[str]:
    """What is missing of the brokers whose logs the open histories disagree on, then the rest."""
    apart: set[int] = set()
    for stretch in outlook.open:
        for number, place in stretch.admitted.run.place.items():
            held = {bool(at.records[place]) for at in stretch.admitted.ends}
            if len(held) > 1:
                apart.add(number)
    return still_to_get(outlook.state, artefacts(outlook.line, apart, COMMITTED))
