"""Signs that something was lost: what an assumption about unseen records must give way to."""

from itertools import pairwise

from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.ground.story import OwnStep
from replication.protocol.histories.filters.timeline import Timeline


def tells_of_a_loss(line: Timeline) -> bool:
    """Whether anything shows that records went: an unclean election, a cut, a log that came back
    shorter or from which damaged records were dropped, or two records at one offset."""
    if any(subject == "whole_log" for subject, _ in line.state.coverage):
        return True
    if any(window.kind in UNCLEAN_KINDS for window in line.windows):
        return True
    if any(_lost(steps) for steps in line.own.values()):
        return True
    spans = sorted({s for s in line.labels if None not in s[2:]})
    return any(a.end_offset > b.first_offset and a[2:] != b[2:] for a, b in pairwise(spans))


def _lost(steps: list[OwnStep]) -> bool:
    """Whether one broker's steps tell that its log was cut, or came back shorter."""
    end = 0
    for step in steps:
        told = step.log_end_offset
        if step.kind == "cut" and (told is None or told < max(end, step.first_offset or 0)):
            return True
        if told is None or step.kind in ("copy", "log_start"):
            continue
        if told < end:
            return True
        end = told
    return False
