"""On brokers of which releases each command did what its check says: by a recorded run.

`python -m tests.kafka_lab.elections --again DIR --record` writes it; by the row's key.
"""

TRIED: dict[str, tuple[str, ...]] = {
    "copy 0.8 zookeeper+kraft": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "dump 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "dump 2.0 zookeeper+kraft": (
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "elect_uncleanly 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "elect_uncleanly 2.1 zookeeper": ("2.3.1 ZooKeeper",),
    "elect_uncleanly 2.4 zookeeper": (
        "2.8.2 ZooKeeper",
        "3.9.1 ZooKeeper",
    ),
    "elect_uncleanly 3.1 kraft": (
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "leaderless 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "leaderless 2.2 zookeeper+kraft": (
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "prefer 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
        "2.3.1 ZooKeeper",
    ),
    "prefer 2.4 zookeeper+kraft": (
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "put_back 0.8 zookeeper+kraft": (
        "2.8.2 ZooKeeper",
        "4.3.0 KRaft",
    ),
    "start 2.2 zookeeper+kraft": (
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_controllers 2.8 kraft": ("3.6.2 KRaft",),
    "start_controllers 3.7 kraft": (
        "3.9.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_to_follow 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "start_to_follow 2.2 zookeeper+kraft": (
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_to_lead 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "start_to_lead 2.2 zookeeper+kraft": (
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "start_to_lead_uncleanly 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
    ),
    "stop 0.8 zookeeper+kraft": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
        "2.3.1 ZooKeeper",
        "2.8.2 ZooKeeper",
        "3.6.2 KRaft",
        "3.9.1 KRaft",
        "3.9.1 ZooKeeper",
        "4.1.1 KRaft",
        "4.3.0 KRaft",
    ),
    "unclean_off 0.8 zookeeper": (
        "0.10.2.2 ZooKeeper",
        "1.1.1 ZooKeeper",
        "2.3.1 ZooKeeper",
    ),
    "unclean_off 2.5 zookeeper+kraft": ("4.3.0 KRaft",),
}
