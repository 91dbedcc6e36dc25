"""A danger as a row of the outward contract: what may fail, what it would cost, since when."""

from typing import Any

from replication.protocol.ground.model import moment
from replication.protocol.ground.risks import Key, Risk, Run
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.at_risk import Danger, other_causes
from replication.protocol.judgement.promised_tiers import COMMITTED
from replication.protocol.judgement.risk_watch import key_of, run_of, since_when

# What has to happen first, if anything.
_FAILURES = {
    "leader_stops": "broker {} stops",
    "leader_loses_its_tail": "broker {} loses power",
    "leader_loses_its_log": "broker {} comes back with an emptied directory",
}
# What not to do until it is safe again.
_DO_NOT = {
    "leader_stops": "do not stop or restart broker {}",
    "leader_loses_its_tail": "do not kill or restart broker {}, and do not elect another replica",
    "leader_loses_its_log": "do not empty or replace the log directory of broker {}",
    "unclean_election": "do not elect broker {}, and do not start it first",
    "clean_election": "do not elect broker {}, and do not start it first",
}


def present_row(state: State, danger: Danger) -> dict[str, Any]:
    """A danger at the end of the evidence, with what not to do."""
    row = _row(key_of(state, danger), run_of(danger), since_when(state, danger), None)
    do_not = _DO_NOT[danger.failure].format(danger.broker)
    replica = state.replicas.get(danger.broker)
    if danger.failure == "leader_loses_its_tail" and replica is not None and replica.stopped:
        # A clean stop has flushed the log: a loss of power takes nothing of it.
        row["failures"] = [f"broker {danger.broker} loses its log directory"]
        do_not = (
            f"keep the log directory of broker {danger.broker}, and do not elect another replica"
        )
    causes = [danger.cause, *other_causes(state, danger), *_conditions(state, danger)]
    ends_when = f"{row['ends_when']} Until then {do_not}.{_decided_then(danger)}"
    return {**row, "causes": causes, "over": False, "ends_when": ends_when}


def past_row(risk: Risk, run: Run) -> dict[str, Any]:
    """A danger that has passed, with what it would have cost when it was last looked at."""
    return {**_row(risk.key, run, risk.since, risk.until), "causes": [run[3]], "over": True}


def _row(key: Key, run: Run, since: int | None, until: int | None) -> dict[str, Any]:
    leader_epoch, failure, broker, next_leader, _ = key
    first, end, tier, cause, holders = run
    needed = [_FAILURES[failure].format(broker)] if failure in _FAILURES else []
    return {
        "leader_epoch": leader_epoch if leader_epoch >= 0 else None,
        "first_offset": first,
        "end_offset": end,
        "records": end - first,
        "tier": tier,
        "failure": failure,
        "failures": needed,
        "broker": broker,
        "next_leader": next_leader,
        "cause": cause,
        "holders": list(holders),
        "since": moment(since),
        "until": moment(until),
        "ends_when": f"Safe again once {_safe_once(key, run)}.",
        "one_more_failure": _one_more(failure, broker, holders),
    }


def _safe_once(key: Key, run: Run) -> str:
    """What ends the danger."""
    _, failure, _, next_leader, _ = key
    _, end, _, _, holders = run
    if failure == "leader_stops":
        return f"broker {next_leader} has fetched offset {end - 1}"
    if failure == "leader_loses_its_tail":
        return f"another replica has fetched offset {end - 1}"
    if failure == "leader_loses_its_log":
        return "another replica is in the ISR"
    if not holders:
        return "a replica that has them leads"
    return f"broker {' or '.join(map(str, holders))} leads"


def _one_more(failure: str, broker: int, holders: tuple[int, ...]) -> str:
    """Where copies of the records are left after the failure, and what would end these."""
    if len(holders) > 1:
        *some, last = map(str, holders)
        return f"copies stay on brokers {', '.join(some)} and {last} until each of them follows"
    if holders:
        return f"broker {holders[0]} follows or loses its log: no copy is left"
    if failure == "leader_stops":
        return f"no copy is left once broker {broker} follows, or has lost its disk"
    return "no copy is left after the first failure"


def _decided_then(danger: Danger) -> str:
    """Whom `decide` has lead once the failure has happened, or now where no failure is needed: who
    still has what was promised (tests/decisions/test_elected makes it happen, and asks)."""
    if danger.tier not in COMMITTED:
        return ""
    when = " Should it happen, decide" if danger.failure in _FAILURES else " Decide"
    own = [danger.broker] if danger.failure == "leader_stops" else []
    named = sorted({*danger.holders, *own})
    if not named:
        return f"{when} has no replica to name that has them."
    return f"{when} has broker {' or '.join(map(str, named))} lead, as long as it still has them."


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
