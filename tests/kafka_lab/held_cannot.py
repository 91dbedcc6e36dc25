"""What `preflight` says cannot be lost, held against what kept runs of the laboratory lost.

    python -m tests.kafka_lab.held_cannot DIR

Of every run under DIR whose truth is kept, `preflight` reads the settings of each topic from the
evidence, as an operator would have it read them. A kind of record that none of the failures which
struck the topic's brokers can lose must not be lost. Runs strike more often than the search does,
and do more besides: of each loss that should not be the line says what of it the search does not
look at. Exit status 1 where a record was lost that could not be, and nothing was beyond the search.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from replication.foresight.cluster import Told
from replication.foresight.failures import BY_NAME
from replication.foresight.from_evidence import profiles_of
from replication.foresight.search import Bound, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import ACKS_ALL, COMMITTED
from tests.kafka_lab.history import seconds_of
from tests.kafka_lab.site import Site
from tests.kafka_lab.truth import PartitionTruth, load_truths

# As many brokers, killed within these seconds, ended at the same moment.
TOGETHER = 1.0
# What the search looks at nothing of, by what the laboratory calls it.
BESIDES = {
    "alter_topic": "settings changed", "reassign": "replicas moved", "upgrade": "another release",
    "roll_back": "directories of an earlier stop", "elect_preferred": "the leadership moved",
    "hold_fetches": "fetches held back", "fail_directory": "a directory failed",
    "move_replica": "a replica moved to another directory",
}  # fmt: skip


def struck(actions: Iterable[Mapping[str, Any]], brokers: Iterable[int]) -> Counter[str]:
    """The kinds of failure that struck these brokers, and how often."""
    told = [a for a in actions if a.get("broker") in set(brokers) or "broker" not in a]
    kills = [a for a in told if a["action"] in ("kill9", "ended_by_itself")]
    cut = [a for a in told if a["action"] == "cut_suffix"]
    found: Counter[str] = Counter()
    power = [kill for kill in kills if _is_power(kill, kills, cut)]
    found["power_of_one"] = len(power)
    at = sorted(seconds_of(kill["ts"]) for kill in power)
    found["power_of_all"] = sum(b - a < TOGETHER for a, b in itertools.pairwise(at))
    crashes = len(kills) - len(power)
    stops = sum(_is_back(a, told) for a in told if a["action"] == "sigterm")
    found["two_brokers" if crashes > 1 else "one_broker"] += crashes
    found["wrong_start_order" if stops > 1 else "one_broker"] += stops
    found["one_disk"] = _count(told, "empty_disk")
    found["frozen_broker"] = _count(told, "sigstop")
    found["unclean_forced"] = _count(told, "elect_unclean")
    return +found


def _count(actions: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(action["action"] == name for action in actions)


def _is_back(stop: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether it was started again: the laboratory stops everybody at the end."""
    return any(
        a["action"] == "start" and a.get("broker") == stop["broker"] and a["ts"] > stop["ts"]
        for a in actions
    )


def _is_power(
    kill: Mapping[str, Any], kills: list[Mapping[str, Any]], cut: list[Mapping[str, Any]]
) -> bool:
    """Whether its log was cut before it was killed again."""
    later = [k["ts"] for k in kills if k["broker"] == kill["broker"] and k["ts"] > kill["ts"]]
    until = min(later, default="9")
    return any(c["broker"] == kill["broker"] and kill["ts"] < c["ts"] < until for c in cut)


def beyond(found: Counter[str], actions: Iterable[Mapping[str, Any]]) -> list[str]:
    """What of a run the search does not look at."""
    most = {"two_brokers": 2, "wrong_start_order": 3}
    often = [f"{name} {n} times" for name, n in found.items() if n > most.get(name, 1)]
    besides = {BESIDES[a["action"]] for a in actions if a["action"] in BESIDES}
    several = ["failures of several kinds"] if len(found) > 1 else []
    return [*often, *several, *sorted(besides)]


@cache
def can(settings: Settings, failure: str) -> frozenset[str]:
    """The kinds that this failure can lose."""
    return frozenset(search(settings.without_racks(), BY_NAME[failure], Bound()).lost)


def lost(truth: PartitionTruth) -> set[str]:
    """The kinds of which the run lost a record for certain."""
    sure = [one for one in truth.losses if one.sure]
    kinds = {ACKS_ALL for one in sure if one.acks == "all"}
    return kinds | {COMMITTED for one in sure if one.committed}


def judged(directory: Path, score: Counter[str]) -> None:
    """Holds one kept run against what `preflight` says."""
    site = Site.kept(directory / "cluster")
    actions = site.actions()
    settings = {
        topic: profile.settings
        for profile in profiles_of([directory / "evidence"], Told())
        for topic in profile.topics
    }
    score["runs"] += 1
    for (topic, number), truth in load_truths(directory / "truth.json").items():
        replicas = site.assignments.get(topic, {}).get(number)
        if replicas is None or topic not in settings:
            score["partitions that preflight could not read"] += 1
            continue
        found = struck(actions, replicas)
        can_be = set().union(*(can(settings[topic], name) for name in found))
        gone = lost(truth)
        score["partitions"] += 1
        for kind in (ACKS_ALL, COMMITTED):
            score[
                f"{'CAN' if kind in can_be else 'CANNOT'}, {'lost' if kind in gone else 'kept'}"
            ] += 1
        if wrong := gone - can_be:
            more = beyond(found, actions)
            score["BROKEN within the search" if not more else "lost beyond the search"] += 1
            print(f"{directory.name} {topic}-{number} {settings[topic]}")
            print(f"  lost {sorted(wrong)}; struck by {dict(found)}; beyond: {more}", flush=True)


def main(arguments: list[str]) -> int:
    """Prints the losses that should not be, and the counts."""
    score: Counter[str] = Counter()
    for path in sorted(Path(arguments[0]).glob("**/truth.json")):
        judged(path.parent, score)
    for what, number in sorted(score.items()):
        print(f"{number:6} {what}")
    return int(not score["runs"] or score["BROKEN within the search"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
