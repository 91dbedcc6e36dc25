"""On brokers of which releases each command did what its check says: by a recorded run.

`python -m tests.kafka_lab.elections --again DIR --record` writes it; by the row's key.
"""

TRIED: dict[str, tuple[str, ...]] = {
    "copy 0.8 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "dump 2.0 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "elect_uncleanly 3.1 kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "leaderless 2.2 zookeeper+kraft": ("4.1.1 KRaft",),
    "prefer 2.4 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start 2.2 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_to_follow 2.2 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_to_lead 2.2 zookeeper+kraft": (
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
}
