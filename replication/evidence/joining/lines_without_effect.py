"""Lines of a broker that tell less than they seem to: of a log that may be another one of its name,
and of requests that changed nothing."""

from replication.evidence.broker_logs.broker_log import LogLineFact

_BY_THEN_LOADED = frozenset(
    ("process_started", "leader_and_isr_received", "became_leader", "became_follower",
     "log_created")
)  # fmt: skip


def loaded_under_one_name(lines: list[LogLineFact]) -> set[tuple[str, int | None]]:
    """Where the lines are of a start that loads several logs of the name, with other ends: one of
    a deleted topic, or on its way to another directory, lies beside it, and the line names only the
    directory above (seen in 1.1.1). Which is which nothing tells."""
    found: set[tuple[str, int | None]] = set()
    loads: list[LogLineFact] = []
    for line in lines:
        if line.kind == "log_loaded":
            loads.append(line)
            if len({one.fields.get("log_end_offset") for one in loads}) > 1:
                found.update((one.path, one.line) for one in loads)
        elif line.kind in _BY_THEN_LOADED:
            loads = []
    return found


def not_obeyed(lines: list[LogLineFact]) -> set[tuple[str, int]]:
    """Where the lines are of requests that changed nothing: one that is refused, since its leader
    epoch is known (`becomeLeaderOrFollower`), and one to follow a leader that is not alive: such a
    replica follows nobody, cuts and fetches nothing, and knows of no other epoch than before
    (`makeFollowers`)."""
    found: set[tuple[str, int]] = set()
    asked: dict[tuple[str, object], LogLineFact] = {}
    last: dict[str, LogLineFact] = {}
    for line in lines:
        place = line.path, line.fields.get("leader")
        if line.kind == "leader_and_isr_received":
            asked[place] = last[line.path] = line
        elif line.kind == "process_started":
            asked.clear()
            last.clear()
        elif line.kind == "role_change_started":
            last.pop(line.path, None)
        elif line.kind == "leader_and_isr_ignored" and line.path in last:
            request = last.pop(line.path)
            if request.fields.get("leader_epoch") == line.fields.get("leader_epoch"):
                found.add((request.path, request.line))
        elif line.kind == "become_follower_failed" and place in asked:
            request = asked.pop(place)
            found.add((request.path, request.line))
    return found
