"""Captured incidents in shapes of `tests.handed_over`: what is said contradicts no truth."""

import pytest

from tests.handed_over import OF_DUMPS, SHAPES, dumped, one_behind_the_other, outcome

LOST, HEALTHY = "unclean_election__4.1.1", "healthy_rolling_restart__4.3.0"
HEALTHY_TRACE = "healthy_rolling_restart__4.1.1__trace"


@pytest.mark.parametrize(
    ("incident", "shape"),
    [
        (LOST, "logs in JSON"),
        (LOST, "log and describe in a file, wrapped"),
        (LOST, "acks and log in a file, cut"),
        (HEALTHY, "logs of containerd"),
        (HEALTHY, "logs rotated and packed"),
        (HEALTHY_TRACE, "logs, the first half"),
        ("chaos__2.8.2__seed36", "logs, the last half"),
    ],
)
def test_no_shape_makes_a_verdict_wrong(incident: str, shape: str) -> None:
    found = outcome(incident, SHAPES[shape])
    assert found.wrong + found.assumed == []
    assert found.sorts["nothing said"] == 0


@pytest.mark.parametrize(
    "shape",
    [
        "dump and log in a file", "log and dump in a file", "dump and describe in a file",
        "acks and dump in a file, wrapped", "dump and acks in a file, the last part",
    ],
)  # fmt: skip
def test_a_dump_in_a_file_with_others_is_read(shape: str) -> None:
    found = outcome(LOST, one_behind_the_other(dumped(LOST), OF_DUMPS[shape]))
    assert found.wrong + found.assumed == []
    assert found.sorts["nothing said"] == 0
