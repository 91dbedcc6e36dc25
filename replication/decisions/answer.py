"""The answer of `decide` as one JSON-able object (docs/decisions.schema.json)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from replication.decisions.candidates import (
    Candidate,
    Lost,
    Outlook,
    last_known,
    not_seen,
    outlook,
)
from replication.decisions.choosing import (
    NOTHING_TO_DECIDE,
    SHOW_BOTH,
    Choice,
    by_log_end,
    choose,
    last_leader,
)
from replication.decisions.down import copies_of_the_stopped, perhaps_running
from replication.decisions.plan import Plan, Step, plan_of, plan_of_older
from replication.decisions.questions import PROMISED, TIERS
from replication.decisions.ranges import has_no_end, size, with_open_end
from replication.decisions.start_order import keep_order, start_order
from replication.decisions.traps import mode_of, release_of, setting_is_heeded, unclean_is_on
from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.assumptions import ASSUMPTIONS

FORMAT_VERSION = 1
# Exit statuses, in the sense of the other commands.
ALL_KEPT, SOME_LOST, NOT_DECIDED = 0, 1, 3


@dataclass(slots=True)
class Decision:
    """All that is answered about one partition. older: the steps that put each older copy back."""

    outlook: Outlook
    choice: Choice
    plan: Plan
    older: list[list[Step]] = field(default_factory=list)


def decide(
    state: State,
    *,
    strict: bool = False,
    down: frozenset[int] = frozenset(),
    ended: frozenset[int] = frozenset(),
    away: frozenset[int] = frozenset(),
    elect: int | None = None,
) -> Decision:
    """Asks the histories, chooses, and plans. down: brokers that the caller knows to be down, and
    to have been when their newest copies were made; ended: those that are down by the
    metadata log or their own last lines, whatever their copies show; away: those that are not to
    be waited for; elect: the replica that the caller chose, in place of what is advised."""
    copies_of_the_stopped(state, down | away)
    found = outlook(state, strict=strict, whole=elect is not None, down=down | ended, away=away)
    choice = choose(found, elect)
    older = [plan_of_older(found, choice, x) for x in found.older]
    return Decision(found, choice, plan_of(found, choice), older)


def due(
    states: Iterable[State], ended: Mapping[str, frozenset[int]] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    """The partitions at which something is to be decided, each as `partition_json` has it. ended:
    by cluster, who is down by the metadata log or its own last lines."""
    asked = (decide(s, ended=ended.get(s.cluster_id, frozenset())) for s in states)
    found = [d for d in asked if d.choice.advice != NOTHING_TO_DECIDE]
    _start_orders(found)
    yield from map(partition_json, found)


def as_json(
    decisions: Sequence[Decision],
    incident: str | None,
    as_seen: int = 0,
    copy_first: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The whole answer; partitions at which there is nothing to decide are counted only. as_seen:
    in how many partitions that nothing is lost rests on it that none vanished without a trace.
    copy_first: folders of deleted topics that the start of a broker deletes."""
    shown = [d for d in decisions if d.choice.advice != NOTHING_TO_DECIDE]
    orders = _start_orders(shown)  # Puts the followers of each plan in that order, too.
    rows = [partition_json(d) for d in shown]
    used = {name for row in rows for name in row["assuming"]}
    return {
        "format_version": FORMAT_VERSION,
        "incident": incident,
        "partitions_looked_at": len(decisions),
        "partitions_as_seen": as_seen,
        "partitions_not_known": [_not_known(d) for d in decisions if is_not_known(d)],
        "partitions": rows,
        "start_orders": orders,
        "copy_first": list(copy_first),
        "assumptions": [
            {
                "name": name,
                "sentence": a.sentence,
                "withdrawn_by": a.withdrawn_by,
                "unnecessary_with": a.unnecessary_with,
            }
            for name, a in ASSUMPTIONS.items()
            if name in used
        ],
    }


def is_not_known(decision: Decision) -> bool:
    """Whether nothing is to be decided as far as the evidence shows, and it does not show all: the
    log of each assigned replica is not in it, or which they are."""
    of = decision.outlook
    if decision.choice.advice != NOTHING_TO_DECIDE or of.state.settings.deleted:
        return False
    return of.line.assigned is None or bool(not_seen(of))


def _not_known(decision: Decision) -> dict[str, Any]:
    of = decision.outlook
    return {
        "cluster_id": of.state.cluster_id or None,
        "topic": of.state.topic,
        "topic_id": of.state.topic_id or None,
        "partition": of.state.partition,
        "leader": decision.choice.leader,
        "replicas_known": of.line.assigned is not None,
        "replicas_not_seen": not_seen(of),
    }


def _start_orders(shown: list[Decision]) -> list[dict[str, Any]]:
    """By cluster, in which order to start those brokers of which some plan says one; each plan has
    its followers in that order then."""
    by_cluster: dict[str, list[Decision]] = {}
    for d in shown:
        by_cluster.setdefault(d.outlook.state.cluster_id, []).append(d)
    found = []
    for cluster_id, of in sorted(by_cluster.items()):
        away = frozenset[int]().union(*(d.outlook.away for d in of))
        down = {c.replica for d in of for c in d.outlook.candidates if not c.runs}
        order = start_order([(d.choice, d.plan) for d in of], down, away)
        if order.brokers == []:
            continue
        names = [f"{d.outlook.state.topic}-{d.outlook.state.partition}" for d in of]
        ring = [
            {"first": first, "then": then, "by": [names[place] for place in places]}
            for first, then, places in order.ring
        ]
        found.append(
            {
                "cluster_id": cluster_id or None,
                "brokers": order.brokers,
                "contradiction": ring,
                "early": [
                    {"broker": then, "before": first, "partition": names[place]}
                    for place, first, then in order.early
                ],
            }
        )
        for d in of:
            keep_order(d.plan, order.brokers or ())
    return found


def partition_json(decision: Decision) -> dict[str, Any]:
    """One partition: the choices, the advice and the plan."""
    of, choice, plan = decision.outlook, decision.choice, decision.plan
    state, flags = of.state, of.state.behaviour()
    isr = state.registration.isr
    return {
        "cluster_id": state.cluster_id or None,
        "topic": state.topic,
        "topic_id": state.topic_id or None,
        "partition": state.partition,
        "occasion": choice.occasion,
        "leader": choice.leader,
        "last_leader": last_leader(state),
        "isr": None if isr is None else list(isr),
        "min_insync_replicas": state.settings.min_insync_replicas,
        "kafka_version": state.settings.kafka_version,
        "controller": state.settings.controller or (flags.controller if flags else None),
        "advice": choice.advice,
        "as_asked": choice.as_asked,
        "replica": choice.replica,
        "costs": choice.costs,
        "safe": choice.safe,
        "rivals": choice.rivals,
        "ranking": choice.ranking,
        "log_ends": [
            {"replica": n, "log_end_offset": r.log.log_end_offset}
            for n, r in sorted(state.replicas.items())
            if r.log.log_end_offset is not None
        ],
        "proof": None if choice.proof is None else asdict(choice.proof),
        "newest_epoch_then_longest_log": by_log_end(state, of.away),
        "undecided_because": choice.because,
        "settled_by": choice.settled_by,
        "unexplained": with_open_end(of.unexplained),
        "perhaps_running": perhaps_running(state),
        "away": sorted(of.away),
        "nobody_leads_without": sorted(of.away) if _needs_election(of) else [],
        "assuming": sorted(_assuming(decision)),
        "lost_under_every_choice": {t: with_open_end(of.gone[t].surely) for t in TIERS},
        "older_copies": [
            {
                "replica": x.replica,
                "kind": x.kind,
                "path": state.sources.get(x.shown_by, (None, None, None))[0],
                "alone": [list(run) for run in x.alone],
                "lost": {tier: _lost(x.lost[tier]) for tier in TIERS} if x.lost else None,
                "assuming": sorted(x.assuming),
                "steps": _numbered(steps),
            }
            for x, steps in zip(of.older, decision.older, strict=True)
        ],
        "candidates": [_candidate(c, of, isr is not None) for c in _ranked(decision)],
        "not_yet": [asdict(n) for n in plan.not_yet],
        "traps": [asdict(t) for t in plan.traps],
        "release_known": plan.release_known,
        "steps": _numbered(plan.steps),
    }


def _needs_election(of: Outlook) -> bool:
    """Whether no start of a broker that is not away brings a leader, unless somebody elects one."""
    by_setting = unclean_is_on(of) and setting_is_heeded(release_of(of), mode_of(of))
    by_start = any(c.trusted or c.replica == last_known(of.state) for c in of.candidates)
    return of.state.registration.isr is not None and not by_start and not by_setting


def _numbered(steps: list[Step]) -> list[dict[str, Any]]:
    return [
        {"number": n, **asdict(step), "tried": list(step.tried)} for n, step in enumerate(steps, 1)
    ]


def exit_status(decisions: Sequence[Decision]) -> int:
    """0 each choice that is due costs nothing promised; 1 one costs something promised, whatever is
    chosen; 3 one is not decided, or not known whether there is anything to decide."""
    if any(d.choice.costs == "not_known" or is_not_known(d) for d in decisions):
        return NOT_DECIDED
    lost = any(
        d.choice.advice == SHOW_BOTH
        or d.choice.costs == "promised"
        or any(d.outlook.gone[t].surely for t in PROMISED)
        for d in decisions
        if d.choice.advice != NOTHING_TO_DECIDE
    )
    return SOME_LOST if lost else ALL_KEPT


def _assuming(decision: Decision) -> frozenset[str]:
    """What the advice rests on: what is said of the chosen one, or of all that are shown."""
    chosen = decision.choice.replica
    named = [c for c in decision.outlook.candidates if chosen in (None, c.replica)]
    return frozenset().union(*(c.assuming for c in named))


def _ranked(decision: Decision) -> list[Candidate]:
    order = {n: i for i, n in enumerate(decision.choice.ranking)}
    return sorted(decision.outlook.candidates, key=lambda c: order[c.replica])


def _candidate(c: Candidate, of: Outlook, isr_is_known: bool) -> dict[str, Any]:
    return {
        "replica": c.replica,
        "clean_election": c.trusted if isr_is_known else None,
        "elected_by_start": c.trusted or c.replica == last_known(of.state),
        "runs": c.runs,
        "log_is_here": c.at_hand,
        "keeps_all_promised": c.is_safe,
        "lost": {tier: _lost(c.lost[tier]) for tier in TIERS},
        "costs": {tier: _lost(c.own[tier]) for tier in TIERS},
        "copies": [
            {
                "replica": x.replica,
                "cut_by_first_fetch": with_open_end(x.cut),
                "kept_and_diverging": with_open_end(x.diverging),
                "either": with_open_end(x.undecided),
                "assuming": sorted(x.assuming),
            }
            for x in c.copies
        ],
        "assuming": sorted(c.assuming),
    }


def _lost(lost: Lost) -> dict[str, Any]:
    return {
        "surely": with_open_end(lost.surely),
        "surely_records": size(lost.surely),
        "perhaps": with_open_end(lost.perhaps),
        "perhaps_records": None if has_no_end(lost.perhaps) else size(lost.perhaps),
    }
