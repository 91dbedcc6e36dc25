"""The release of a broker by the newest metadata version that it registers (MetadataVersion).

From 3.3 on a broker registers with the controller which levels of each feature it knows; the newest
level of `metadata.version` is that of its own release, so a metadata log tells what its brokers run
where no line of theirs does.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

FEATURE = "metadata.version"
# The first level of each branch that registers its levels.
_FIRST_LEVELS = (
    (4, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
)
_NEWEST_LEVEL = 30


def newest_level(features: Any) -> int | None:
    """The newest level of metadata.version among the features of a RegisterBrokerRecord; None where
    it is not among them, or where they are none (a dump that somebody has edited)."""
    for feature in features if isinstance(features, list | tuple) else ():
        if isinstance(feature, Mapping) and feature.get("name") == FEATURE:
            level = feature.get("max_supported_version")
            return level if isinstance(level, int) else None
    return None


def branch_of(level: int) -> str | None:
    """The branch whose newest level this is, such as "3.9"; None for one that is not known here."""
    if not _FIRST_LEVELS[0][0] <= level <= _NEWEST_LEVEL:
        return None
    return _FIRST_LEVELS[bisect_right(_FIRST_LEVELS, level, key=lambda row: row[0]) - 1][1]
