"""The answer of `preflight` as one JSON-able object (docs/preflight.schema.json)."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from replication.foresight.changes import Change, closing
from replication.foresight.cluster import Profile
from replication.foresight.drawing import drawn, in_words, told
from replication.foresight.failures import BY_NAME, Failure
from replication.foresight.search import Bound, Found, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, PROMISED

FORMAT_VERSION = 1
# Exit statuses, in the sense of the other commands.
CANNOT, CAN_LOSE, NOT_ENDED = 0, 1, 3
_ANSWERS = {CANNOT: "cannot", CAN_LOSE: "can_lose", NOT_ENDED: "not_found"}
MOST_PROCESSES = 4
NO_RACKS = "the racks of its brokers are not known"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: kinds of failure, how far to search, whether changes are looked for."""

    failures: tuple[str, ...]
    bound: Bound
    changes: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What was found for one profile and one kind of failure; found None: it could not be asked."""

    failure: Failure
    found: Found | None
    changes: tuple[Change, ...] | None = None
    changes_asked: bool = False


def ask(profiles: Sequence[Profile], asked: Asked) -> list[list[Result]]:
    """The results of each profile, in the order of the failures asked for."""
    pairs = [(p.settings, name) for p in profiles for name in asked.failures]
    # Racks matter to one kind of failure: profiles that differ in nothing else are asked once.
    tasks = list(dict.fromkeys(_task(settings, name) for settings, name in pairs))
    found = dict(zip(tasks, _all(tasks, asked), strict=True))
    results = [found[_task(settings, name)] for settings, name in pairs]
    each = len(asked.failures)
    return [results[n * each : (n + 1) * each] for n in range(len(profiles))]


def _task(settings: Settings, name: str) -> tuple[Settings, str]:
    is_of_racks = BY_NAME[name].together == "rack"
    return (settings if is_of_racks else settings.without_racks(), name)


def _all(tasks: list[tuple[Settings, str]], asked: Asked) -> Iterator[Result]:
    work = [(settings, name, asked) for settings, name in tasks]
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)), len(work))
    if processes <= 1:
        yield from map(_one, work)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_one, work)


def _one(work: tuple[Settings, str, Asked]) -> Result:
    settings, name, asked = work
    failure = BY_NAME[name]
    if failure.together == "rack" and not settings.racks:
        return Result(failure, None)
    found = search(settings, failure, asked.bound)
    losing = [found.lost[kind] for kind in PROMISED if kind in found.lost]
    if not losing or not asked.changes:
        return Result(failure, found)
    changes = closing(settings, failure, asked.bound, losing)
    return Result(failure, found, None if changes is None else tuple(changes), True)


def as_json(
    profiles: Sequence[Profile], results: list[list[Result]], asked: Asked,
    kinds: Sequence[str] = PROMISED,
) -> dict[str, Any]:  # fmt: skip
    """The whole answer. kinds: of records, whose loss decides the overall one."""
    return {
        "format_version": FORMAT_VERSION,
        "answer": _ANSWERS[exit_status(results, kinds)],
        "decided_by": list(kinds),
        "topics": sum(len(p.topics) for p in profiles),
        "partitions": sum(sum(p.topics.values()) for p in profiles),
        "bound": {"records": asked.bound.records, "states": asked.bound.states},
        "profiles": [
            _profile(profile, of, kinds) for profile, of in zip(profiles, results, strict=True)
        ],
    }


def _profile(profile: Profile, results: list[Result], kinds: Sequence[str]) -> dict[str, Any]:
    s = profile.settings
    losing = [r for r in results if r.found is not None and any(k in r.found.lost for k in kinds)]
    return {
        "answer": _ANSWERS[exit_status([results], kinds)],
        "can_lose_by": [r.failure.name for r in losing],
        "kafka_version": s.kafka_version,
        "brokers_run": profile.brokers_run,
        "controller": s.controller,
        "replicas": s.replicas,
        "min_insync_replicas": s.min_insync_replicas,
        "unclean_leader_election": s.unclean,
        "leader_alone_answers_acks_all": min(s.min_insync_replicas, s.replicas) == 1,
        "eligible_leader_replicas": s.eligible,
        "flushes_each_record": s.flushed,
        "racks": list(s.racks) or None,
        "defaults": [
            {"setting": name, "value": value, "brokers": sorted(profile.defaults[name])}
            for name, value in profile.taken_by_default().items()
        ],
        "topics": [{"topic": t, "partitions": n} for t, n in sorted(profile.topics.items())],
        "failures": [_failure(s, result) for result in results],
    }


def _failure(settings: Settings, result: Result) -> dict[str, Any]:
    failure, found = result.failure, result.found
    return {
        "failure": failure.name,
        "means": failure.sentence,
        "not_asked": NO_RACKS if found is None else None,
        "bound": failure.bound,
        "lags": failure.lags(settings.replicas),
        "states": None if found is None else found.states,
        "steps": None if found is None else found.steps,
        "records": {
            kind: None if found is None else _kind(settings, failure, found, kind) for kind in KINDS
        },
        "closing": _closing(result),
        "is_closed_by": _changes(result),
    }


def _closing(result: Result) -> str:
    """Whether changes are due, were looked for, and were found."""
    if result.found is None or not any(kind in result.found.lost for kind in PROMISED):
        return "not_needed"
    if not result.changes_asked:
        return "not_asked"
    return "none_found" if result.changes is None else "found"


def _kind(settings: Settings, failure: Failure, found: Found, kind: str) -> dict[str, Any]:
    history = found.lost.get(kind)
    if history is None:
        ended = "cannot" if found.steps is None else "not_found"
        return {"answer": ended, "history": None, "drawn": None}
    moves = told(settings, failure, history, kind)
    return {
        "answer": "can_lose",
        "history": [{"command": line, "means": in_words(line)} for move in moves for line in move],
        "drawn": drawn(settings, failure, history, kind).splitlines(),
    }


def _changes(result: Result) -> list[dict[str, str]] | None:
    if result.changes is None:
        return None
    return [{"change": c.name, "price": c.price} for c in result.changes]


def exit_status(results: list[list[Result]], kinds: Sequence[str]) -> int:
    """1 where a record of one of these kinds can be lost by a failure that was asked about; 3 where
    none was found, and a search did not end."""
    found = [r.found for of in results for r in of if r.found is not None]
    if any(kind in each.lost for each in found for kind in kinds):
        return CAN_LOSE
    return CANNOT if all(each.steps is None for each in found) else NOT_ENDED
