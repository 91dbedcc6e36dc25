"""On brokers of which releases each command did what its check says: by a recorded run.

`python -m tests.kafka_lab.elections --again DIR --record` writes it; by the row's key.
"""

TRIED: dict[str, tuple[str, ...]] = {}
