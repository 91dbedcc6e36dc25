"""Leader epochs of the metadata log: the many are believed, not the newest."""

from collections import Counter

from replication.evidence.metadata_log.leader_epochs import Run, epoch_starts


def test_each_run_has_the_epoch_that_most_of_its_batches_say() -> None:
    runs = [Run(0, Counter({1: 9})), Run(20, Counter({2: 5, 99: 1}))]
    starts, doubts = epoch_starts(runs)
    assert starts == ((1, 0), (2, 20))
    assert len(doubts) == 1
    assert "after metadata offset 20, in leader epoch 2" in doubts[0]
    assert "leader epoch 99: not believed" in doubts[0]


def test_two_runs_of_one_epoch_are_one_epoch() -> None:
    """A break in the copy begins a run, and no epoch."""
    assert epoch_starts([Run(0, Counter({1: 9})), Run(20, Counter({1: 2}))]) == (((1, 0),), [])
    assert epoch_starts([]) == ((), [])
