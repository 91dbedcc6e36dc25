"""A danger as a row of the outward contract: what may fail, what it would cost, since when."""

from typing import Any

from replication.protocol.ground.model import moment
from replication.protocol.ground.risks import Risk, Run
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger, other_causes
from replication.protocol.judgement.risk_watch import key_of, run_of, since_when

_FAILURES = {
    "leader_stops": ("broker {broker} stops",),
    "leader_loses_its_tail": ("broker {broker} loses what it alone holds",),
    "leader_loses_its_log": ("broker {broker} comes back with an emptied directory",),
    "unclean_election": (),
    "clean_election": (),
}


def present_row(state: State, danger: Danger) -> dict[str, Any]:
    """A danger that stands at the end of the evidence."""
    risk = Risk(*key_of(state, danger), since_when(state, danger))
    causes = [danger.cause, *other_causes(state, danger), *_conditions(state, danger)]
    return {**_row(risk, run_of(danger)), "causes": causes}


def past_row(state: State, risk: Risk, run: Run) -> dict[str, Any]:
    """A danger that has passed, with what it would have cost when it was last looked at."""
    return {**_row(risk, run), "causes": [run[3]]}


def _row(risk: Risk, run: Run) -> dict[str, Any]:
    first, end, tier, cause, holders, ends_when = run
    return {
        "leader_epoch": risk.leader_epoch if risk.leader_epoch >= 0 else None,
        "first_offset": first,
        "end_offset": end,
        "records": end - first,
        "tier": tier,
        "failure": risk.failure,
        "failures": [text.format(broker=risk.broker) for text in _FAILURES[risk.failure]],
        "broker": risk.broker,
        "next_leader": risk.next_leader,
        "cause": cause,
        "holders": list(holders),
        "since": moment(risk.since),
        "until": moment(risk.until) if risk.over else None,
        "over": risk.over,
        "ends_when": ends_when,
        "one_more_failure": _one_more(holders),
    }


def _one_more(holders: tuple[int, ...]) -> str:
    """What is left of the records after the failure, and what would end that too."""
    if not holders:
        return "no copy is left after the first failure"
    if len(holders) == 1:
        return f"broker {holders[0]} follows or loses its log: no copy is left"
    brokers = ", ".join(str(h) for h in holders)
    return f"copies stay on brokers {brokers} until each of them follows"


def _conditions(state: State, danger: Danger) -> list[str]:
    """What in the evidence lets the failure cost records, in words."""
    isr, settings = state.registration.isr or (), state.settings
    found = [f"ISR {','.join(map(str, isr)) or 'empty'}"]
    if settings.min_insync_replicas is not None:
        found.append(f"min.insync.replicas={settings.min_insync_replicas}")
    if danger.cause == "unclean_election" and settings.unclean_leader_election is True:
        found.append("unclean.leader.election.enable=true")
    if danger.next_leader is not None and danger.next_leader not in isr:
        found.append(f"broker {danger.next_leader} is behind, outside the ISR")
    return found
