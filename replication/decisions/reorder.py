"""Puts one replica first in a partition's assignment and keeps every other, dead ones too.

    python3 reorder.py --bootstrap-server B --topic T --partition P --first N [--execute]

An unclean election takes the first replica that is alive, so N is elected then and nobody has
to be stopped. No command line does it: kafka-reassign-partitions refuses a list that names a dead
broker, and a list without it takes that broker's copy out of the partition. Without --execute it
only reads, and says what it would ask for. It needs kafka-python 3, and brokers from 2.4 on
(KIP-455). This one file can be copied. Exit status: 0 the order is as wanted (or would be asked
for), 1 it was refused, 2 the call or the cluster is of no use.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

COMMAND = "python3 -m replication.decisions.reorder --bootstrap-server B"
# Brokers that take such an order.
SINCE = (2, 4)
AS_WANTED, REFUSED, UNUSABLE = 0, 1, 2
PATIENCE = 30.0


def main(arguments: list[str]) -> int:
    """Reads the assignment, and with --execute asks the controller for the new order."""
    parser = argparse.ArgumentParser(
        prog="reorder.py", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="B", help="a live broker")
    parser.add_argument("--topic", required=True, help="the topic's name")
    parser.add_argument("--partition", required=True, type=int, help="its number")
    parser.add_argument("--first", required=True, type=int, metavar="N", help="who is to be first")
    parser.add_argument("--execute", action="store_true", help="ask for it; else it only reads")
    parser.add_argument("--config", type=Path, help="JSON: more settings of kafka-python's client")
    chosen = parser.parse_args(arguments)
    try:
        kafka = importlib.import_module("kafka")
    except ImportError:
        return _unusable("it needs kafka-python: pip install 'kafka-python>=3,<4'")
    try:
        more = json.loads(chosen.config.read_text()) if chosen.config else {}
        settings = {"bootstrap_servers": chosen.bootstrap_server, **more}
        admin = kafka.KafkaAdminClient(**{"bootstrap_timeout_ms": 10_000, **settings})
    except (OSError, ValueError, TypeError, kafka.errors.KafkaError) as error:
        return _unusable(f"no connection to {chosen.bootstrap_server}: {error!r}")
    try:
        return _reorder(kafka, admin, chosen)
    except kafka.errors.KafkaError as error:
        return _unusable(f"the cluster answered {error!r}")
    finally:
        admin.close()


def _reorder(kafka: Any, admin: Any, chosen: argparse.Namespace) -> int:
    place = kafka.TopicPartition(chosen.topic, chosen.partition)
    replicas = _replicas(admin, chosen)
    if replicas is None or chosen.first not in replicas:
        return _unusable(
            f"{chosen.topic}-{chosen.partition} is on brokers {replicas}; {chosen.first} is none"
        )
    wanted = [chosen.first, *(n for n in replicas if n != chosen.first)]
    before, after = (",".join(map(str, order)) for order in (replicas, wanted))
    if replicas == wanted:
        print(f"Replicas: {after}: nothing to do")
        return AS_WANTED
    if not chosen.execute:
        print(f"Replicas: {before}; with --execute: {after}")
        return AS_WANTED
    refused = admin.alter_partition_reassignments({place: wanted}).get(place)
    if refused is not None:
        print(f"Replicas: {before}: the controller refused: {refused.__name__}", file=sys.stderr)
        return REFUSED
    end = time.monotonic() + PATIENCE
    while _replicas(admin, chosen) != wanted:
        if time.monotonic() > end:
            print(f"Replicas: {_replicas(admin, chosen)}, not {after}", file=sys.stderr)
            return REFUSED
        time.sleep(0.5)
    print(f"Replicas: {after}. Undo: --first {replicas[0]} --execute")
    return AS_WANTED


def _replicas(admin: Any, chosen: argparse.Namespace) -> list[int] | None:
    """The assignment in its order; None where there is no such partition."""
    for topic in admin.describe_topics([chosen.topic]):
        for each in topic["partitions"]:
            number = each.get("partition_index", each.get("partition"))
            if number == chosen.partition:
                found = each.get("replica_nodes", each.get("replicas"))
                return [int(n) for n in found]
    return None


def _unusable(text: str) -> int:
    print(f"reorder.py: {text}", file=sys.stderr)
    return UNUSABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
