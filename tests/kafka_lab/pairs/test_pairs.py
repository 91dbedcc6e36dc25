"""Three pairs of real runs, kept: `whatif` of one run answers what the other one lost."""

import tarfile
from pathlib import Path

import pytest

from tests.kafka_lab.pairs.__main__ import arms_of, main
from tests.kafka_lab.pairs.comparing import compared, runs_under
from tests.kafka_lab.pairs.lives import Life, can_be_asked, change, grid
from tests.kafka_lab.pairs.scripts import SCRIPTS, Draw

KEPT = Path(__file__).parents[2] / "foresight" / "pairs"
LOST, SAVED, DEPENDS = ("still_lost", "lost"), ("not_lost", "kept"), ("depends", "lost")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        (
            "last_leader_dies__3.9.1",
            {
                "min.insync.replicas=2": SAVED,
                "unclean.leader.election.enable=false": SAVED,
                "replication.factor=4": SAVED,
                "acks=1": LOST,
                "restart.2=no": LOST,
                "kafka=2.8.2": LOST,
            },
        ),
        (
            "both_die_leader_short__2.8.2",
            {
                "min.insync.replicas=2": LOST,
                "unclean.leader.election.enable=false": LOST,
                "acks=1": LOST,
            },
        ),
        (
            "both_die_follower_short__1.1.1",
            {
                # Whether the follower had fetched it before the power failed, nothing tells.
                "acks=all": DEPENDS,
                "unclean.leader.election.enable=true": LOST,
                "kafka=0.10.2.2": LOST,
            },
        ),
    ],
)
def test_a_kept_pair_is_answered_as_the_second_run_showed(
    name: str, answers: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    with tarfile.open(KEPT / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    found = list(compared(runs_under(tmp_path)))
    assert [pair.wrong for pair in found] == [[]] * len(found)
    assert {pair.said: pair.verdicts for pair in found} == {
        said: [verdict] for said, verdict in answers.items()
    }


def test_a_change_is_what_whatif_is_told() -> None:
    was = Life("3.9.1", 1, True, "all", 3)
    then = Life("4.3.0", 2, False, "1", 4, True, ("restart.2", "election"))
    assert change(was, then) == [
        "kafka=4.3.0",
        "eligible.leader.replicas.version=1",
        "min.insync.replicas=2",
        "unclean.leader.election.enable=false",
        "acks=1",
        "replication.factor=4",
        "restart.2=no",
        "election",
    ]
    assert can_be_asked(was, then)
    assert not can_be_asked(then, was)
    assert Life.of_json(then.as_json()) == then


def test_every_script_has_its_runs_and_a_seed_always_draws_the_same() -> None:
    assert len(SCRIPTS) == 8
    for script in SCRIPTS.values():
        arms = list(arms_of(script, 1, []))
        assert len({arm.name for arm in arms}) == len(arms) >= 4
        assert {life.kafka for arm in arms for life in arm.lives} <= {
            version.partition("-")[0] for pair in script.releases for version in pair
        }
    assert Draw.of("a", 1) == Draw.of("a", 1) != Draw.of("a", 2)
    assert len(grid(3, more=4)) == 8


def test_without_a_folder_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "--keep DIR" in capsys.readouterr().err
    assert main(["--list", "--script", "election_forced"]) == 0
    assert "election_forced 1" in capsys.readouterr().out
