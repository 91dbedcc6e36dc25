"""At which of its broker's steps a dump of a log was taken, which tells no time."""

from replication.evidence.joining.line_steps import Step
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.protocol.ground import events as ev


def earliest_place(steps: list[Step], dump: DumpedDirectory) -> int:
    """Before which of the broker's steps a dump was taken, which tells no time: as early as can be.

    So whatever was cut later is cut from it too. It cannot be from before the broker's first step,
    where the lines begin with the topic, nor from before its newest leader epoch and what the
    broker cut for that, nor, while nothing was cut, from before the log was known to be shorter.
    """
    end = dump.log_end_offset or 0
    position = _first_possible(steps, dump.latest_epoch)
    begins = position > 0
    for index in range(position, len(steps)):
        fact = steps[index].fact
        if isinstance(fact, ev.Truncated) and not fact.cuts_nothing:
            if begins and fact.reason in ("high_watermark", "leader_epoch", "diverging_epoch"):
                position = index + 1
            elif fact.to_offset is None or fact.to_offset < end:
                break
        elif isinstance(
            fact, (ev.ReplicaStarted, ev.BecameLeader, ev.BecameFollower, ev.Truncated)
        ):
            known = fact.to_offset if isinstance(fact, ev.Truncated) else fact.log_end_offset
            unsafe = isinstance(fact, ev.ReplicaStarted) and fact.clean is not True
            if unsafe and (known is None or known < end):
                break  # What the log held before, the broker may have lost.
            begins = known is not None and known < end
            position = index + 1 if begins else position
            if known is not None and known >= end:
                break  # From here on it may always have been shorter again.
    return position


def _first_possible(steps: list[Step], latest_epoch: int) -> int:
    """Behind which step a log must have been seen to hold records, the newest of latest_epoch.

    Lines that begin later than the topic say nothing of what was before them. So an epoch's first
    line counts only behind one of an earlier epoch, or where the log's creation is told.
    """
    epochs = [getattr(step.fact, "leader_epoch", None) for step in steps]
    named = [(i, e) for i, e in enumerate(epochs) if e is not None]
    position = 0
    created = next((i for i, step in enumerate(steps) if step.kind == "log_created"), None)
    if created is not None and named and named[0][1] == 0:
        ends = [getattr(step.fact, "log_end_offset", None) for step in steps[:created]]
        position = 0 if any(ends) else created + 1
    if latest_epoch < 0 or not named:
        return position
    reached = next((i for i, e in named if e >= latest_epoch), None)
    if reached is None:
        return len(steps)
    if position or named[0][1] < latest_epoch:
        return max(position, reached + 1)
    return position
