"""Why a replay ends with its exit status, in a line."""

import pytest

from replication.spark.replay import exit_status, why

COMMITTED, MATCHING = "committed_records_survive", "log_matching"


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ({(COMMITTED, "HOLDS"): 3}, "exit status 0: nothing is violated"),
        (
            {(COMMITTED, "VIOLATED"): 1, (MATCHING, "VIOLATED"): 2, (MATCHING, "UNKNOWN"): 7},
            "exit status 1: VIOLATED: committed_records_survive in 1 topic partition, log_matching "
            "in 2 topic partitions; UNKNOWN: log_matching in 7 topic partitions (SELECT * FROM "
            "verdicts WHERE verdict = 'VIOLATED' OR verdict = 'UNKNOWN')",
        ),
        (
            {(COMMITTED, "HOLDS"): 3, (MATCHING, "UNKNOWN"): 1},
            "exit status 3: UNKNOWN: log_matching in 1 topic partition (SELECT * FROM verdicts "
            "WHERE verdict = 'UNKNOWN')",
        ),
        (
            {},
            "exit status 3: no event was judged: --source holds none that counts. Import evidence "
            "into it (replication-import); quarantine has what was refused",
        ),
    ],
)
def test_the_line(verdicts: dict[tuple[str, str], int], says: str) -> None:
    assert why(exit_status(verdicts, strict=False), verdicts) == says


@pytest.mark.parametrize("verdict", ["HOLDS", "VIOLATED", "UNKNOWN"])
def test_events_that_wait_behind_a_gap_are_told_with_each_status(verdict: str) -> None:
    verdicts = {(COMMITTED, verdict): 1}
    told = why(exit_status(verdicts, strict=False), verdicts, held=33)
    assert (
        "; 33 events were not used, since an earlier event of their trace is missing: SELECT"
        in told
    )
    assert "earlier event" not in why(exit_status(verdicts, strict=False), verdicts)


@pytest.mark.parametrize("verdict", ["HOLDS", "VIOLATED", "UNKNOWN"])
def test_what_is_taken_for_granted_is_told_with_each_status(verdict: str) -> None:
    verdicts = {(COMMITTED, verdict): 1}
    told = why(exit_status(verdicts, strict=False), verdicts, assumed=["disks_keep"])
    assert "; taken for granted: disks_keep (SELECT invariant, verdict, assuming" in told
