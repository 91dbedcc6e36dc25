"""A copy that ends below what the files beside it say its log held proves nothing of what is gone.

Of every captured incident the last batches of all cleanly stopped copies are taken away. Whether
they are missing from the copy or from the disk nobody can tell: what was lost before stays lost, at
most, and nothing counts as there that no log shows.
"""

import struct
from pathlib import Path

import pytest

from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    as_captured,
    each_incident,
    folded_with,
    living,
    log_directories,
    verdicts_of,
)
from tests.test_clock_skew import conclusions

QUICK = ("unclean_election__4.1.1", "not_loss_traps__4.3.0__retention")
_SHARES = (0.0, 0.5)


def cut_short(evidence: Path, share: float) -> None:
    """Keeps a share of the batches in the last segment of each partition."""
    for directory in log_directories(evidence):
        if not (directory / ".kafka_cleanshutdown").exists():
            continue
        for partition in sorted(p for p in directory.iterdir() if p.is_dir()):
            segments = sorted(partition.glob("*.log"))
            if segments and partition.name != "__cluster_metadata-0":
                data = segments[-1].read_bytes()
                ends = _batch_ends(data)
                segments[-1].write_bytes(data[: ends[int(share * (len(ends) - 1))]])


def _batch_ends(data: bytes) -> list[int]:
    ends = [0]
    while ends[-1] + 12 <= len(data):
        (size,) = struct.unpack_from(">i", data, ends[-1] + 8)
        if size <= 0 or ends[-1] + 12 + size > len(data):
            break
        ends.append(ends[-1] + 12 + size)
    return ends


@pytest.mark.parametrize("share", _SHARES)
@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_what_a_cut_copy_lacks_is_neither_there_nor_lost(incident: str, share: float) -> None:
    folded = folded_with(incident, lambda evidence: cut_short(evidence, share))
    lost = {
        (identity[1], identity[3], offset)
        for identity, _, losses, *_ in conclusions(as_captured(incident))
        for offset, *_ in losses
    }
    for topic_partition, expected in EXPECTED[incident].items():
        found = living(folded, topic_partition)
        assert found is not None
        verdicts = verdicts_of(found)
        for name, truth in zip(DECIDING[:2], expected["verdicts"], strict=False):
            assert not (verdicts[name] == "VIOLATED" and truth != "VIOLATED"), (name, verdicts)
        reached = any(r.high_watermark for r in found.state.replicas.values())
        assert "HOLDS" not in (verdicts[n] for n in DECIDING[:2]) or not reached, verdicts
        for x in found.answer.losses:
            for offset in range(x["first_offset"], x["end_offset"]):
                assert (*found.identity[1:2], found.identity[3], offset) in lost
