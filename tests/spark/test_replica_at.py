"""replica_at combines what was seen of a replica at several steps, and says nothing impossible."""

import random
from typing import Any

import pytest

from replication.protocol.ground import wire
from replication.protocol.ground.events import (
    Event,
    FollowerAppended,
    HighWatermarkAdvanced,
    ReplicaStarted,
    Truncated,
)
from replication.spark import dialects
from tests.spark.event_rows import identified, made_trace
from tests.spark.questions import questions
from tests.spark.test_duckdb import Rows, connected

BATCH = {"run": "first", "run_number": 0, "query": "fold", "micro_batch_id": 0}
ASKED = (
    "SELECT from_sequence, log_end_offset, high_watermark FROM replica_at "
    "WHERE replica = 1 ORDER BY from_sequence"
)
Seen = tuple[int | None, int | None]


def tables(events: list[Event]) -> Rows:
    stored = [{**wire.to_row(e), "run": "first", "micro_batch_id": 0} for e in events]
    return {"_batches": [BATCH], "replica_events": stored}


def drawn(chance: random.Random) -> list[tuple[Event, Seen]]:
    """Any steps of one replica, with the log end and the high watermark that each shows."""
    found: list[tuple[Event, Seen]] = []
    for number in range(12):
        end, mark = chance.randrange(10), chance.randrange(10)
        fact, seen = chance.choice([
            (FollowerAppended(1, max(0, end - 1), end, 0), (end, None)),
            (Truncated(1, end, end + 3, "diverging_epoch"), (end, None)),
            (HighWatermarkAdvanced(1, mark), (None, mark)),
            (ReplicaStarted(1, 0, end, mark), (end, mark)),
        ])  # fmt: skip
        event = Event("", "trace", "c", "t", "id", 0, number, fact, 1_000 + number, "traced")
        found.append((identified(event), seen))
    return found


def expected(steps: list[Seen]) -> list[Seen]:
    """What holds after each step: the last that was seen of both, and not what was disproved."""
    ends, marks, found = list[int](), list[int](), list[Seen]()
    for number, (end, mark) in enumerate(steps):
        ends += [number] if end is not None else []
        marks += [number] if mark is not None else []
        known_end = steps[ends[-1]][0] if ends else None
        known_mark = steps[marks[-1]][1] if marks else None
        ends_since = [steps[n][0] or 0 for n in ends if marks and n > marks[-1]]
        marks_since = [steps[n][1] or 0 for n in marks if ends and n > ends[-1]]
        found.append((
            None if any(m > (known_end or 0) for m in marks_since) else known_end,
            None if any(e < (known_mark or 0) for e in ends_since) else known_mark,
        ))  # fmt: skip
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_row_holds_a_high_watermark_beside_a_log_end_that_disproves_it(seed: int) -> None:
    """Only one event that shows both may show a high watermark past the log's end."""
    steps = drawn(random.Random(seed))
    found = connected(tables([event for event, _ in steps])).execute(ASKED).fetchall()
    wanted = expected([seen for _, seen in steps])
    assert [(end, mark) for _, end, mark in found] == wanted
    for _, end, mark in found:
        both = None not in (end, mark) and mark > end
        assert not both or (end, mark) in [seen for _, seen in steps]


def test_a_high_watermark_is_not_carried_over_a_cut_below_it() -> None:
    events = made_trace()
    rows: list[Any] = connected(tables(events)).execute(ASKED).fetchall()
    cut = next(e for e in events if isinstance(e.fact, Truncated))
    before, at = rows[-2], rows[-1]
    assert before[2] == 18
    assert at == (cut.sequence, 15, None)


def test_the_question_about_high_watermarks_is_answered_in_the_order_of_steps() -> None:
    [sql] = [sql for question, sql in questions() if "high watermark of each replica" in question]
    connection = connected(tables(made_trace()))
    found = connection.execute(dialects.for_engine(sql, "duckdb"))
    names = [column[0] for column in found.description]
    told = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    of_leader = [(r["from_sequence"], r["high_watermark"]) for r in told if r["replica"] == 1]
    assert of_leader == sorted(of_leader)
    assert [mark for _, mark in of_leader] == sorted(mark for _, mark in of_leader)
    assert of_leader[-1][1] == 18
