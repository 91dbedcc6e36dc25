"""Which release a broker runs, by the features that it registers."""

import pytest

from replication.evidence.metadata_log.metadata_versions import branch_of, newest_level
from replication.protocol.ground.versions import parse_version


def test_the_newest_level_is_that_of_metadata_version() -> None:
    features = [
        {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1},
        {"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 21},
    ]
    assert newest_level(features) == 21
    assert newest_level(features[:1]) is None


@pytest.mark.parametrize(
    "features", [None, 7, "x", [7], [{}], [{"name": "metadata.version"}],
                 [{"name": "metadata.version", "max_supported_version": "21"}]],
)  # fmt: skip
def test_what_is_no_list_of_features_tells_nothing(features: object) -> None:
    assert newest_level(features) is None


@pytest.mark.parametrize(
    ("level", "branch"),
    [(3, None), (7, "3.3"), (8, "3.4"), (11, "3.5"), (14, "3.6"), (19, "3.7"), (20, "3.8"),
     (21, "3.9"), (25, "4.0"), (27, "4.1"), (29, "4.2"), (30, "4.3"), (31, None)],
)  # fmt: skip
def test_each_branch_has_its_levels(level: int, branch: str | None) -> None:
    assert branch_of(level) == branch
    if branch is not None:
        assert parse_version(branch)[2] == 0
