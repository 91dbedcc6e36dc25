"""Whether the controllers' history at hand reaches what is known to have been written."""

from collections.abc import Iterable, Sequence

from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.tools.metadata_quorum import QuorumReplica, QuorumStatus
from replication.evidence.zookeeper.history import ZooKeeperHistory


def torn_history(
    history: MetadataHistory | None, zookeeper: ZooKeeperHistory | None
) -> tuple[str | None, list[str]]:
    """What of the controllers' history was written behind a place that cannot be read, and that no
    copy at hand tells, in words, and notes."""
    if history is not None:
        if history.unknown_since is None:
            return None, []
        of, where = "__cluster_metadata-0 of another node", history.path
        later = f"the metadata log from offset {history.unknown_since} on"
    elif zookeeper is not None and zookeeper.torn is not None:
        of, where = "version-2 of another server, or of this one once more", zookeeper.torn
        later = "what ZooKeeper wrote behind its last whole transaction here"
    else:
        return None, []
    said = f"{where}: {later} is not known, and elections after it are not: hand over {of}"
    return later, [said]


def later_history(
    quorum: Sequence[QuorumStatus | QuorumReplica], history: MetadataHistory | None
) -> tuple[str | None, list[str]]:
    """What of the controllers' log is known to follow the copy at hand, in words, and notes.

    quorum: what kafka-metadata-quorum printed of this cluster.
    """
    members = _members_by_file(quorum)
    committed = [*_committed(quorum, members)]
    if not committed:
        return None, []
    offset, path = max(committed)
    if history is None:
        return None, [
            f"{path}: the metadata log had {offset} committed offsets, and no copy of it is "
            "here: hand over __cluster_metadata-0 of any node"
        ]
    if history.end_offset >= offset:
        return None, []
    missing = f"{history.end_offset}..{offset - 1}"
    reaching = sorted(
        m.node for found in members.values() for m in found if m.log_end_offset >= offset
    )
    nodes = f" (node {', '.join(map(str, reaching))} had them)" if reaching else ""
    return f"the metadata log's offsets {missing}, which its quorum had committed", [
        f"{path}: the copy of the metadata log here, {history.path}, ends before "
        f"offsets {missing} that were committed{nodes}: elections after it are not known; "
        "copy __cluster_metadata-0 after running kafka-metadata-quorum"
    ]


def _members_by_file(
    quorum: Iterable[QuorumStatus | QuorumReplica],
) -> dict[str, list[QuorumReplica]]:
    """Each output's nodes, each as it was printed last."""
    by_file: dict[str, dict[int, QuorumReplica]] = {}
    for member in quorum:
        if isinstance(member, QuorumReplica):
            by_file.setdefault(member.path, {})[member.node] = member
    return {path: list(members.values()) for path, members in by_file.items()}


def _committed(
    quorum: Iterable[QuorumStatus | QuorumReplica], members: dict[str, list[QuorumReplica]]
) -> Iterable[tuple[int, str]]:
    """(end offset of what was committed, path) by each output that tells."""
    for status in quorum:
        if isinstance(status, QuorumStatus) and status.high_watermark is not None:
            yield status.high_watermark, status.path
    for path, nodes in members.items():
        voters = [m for m in nodes if m.role != "Observer"]
        ends = sorted((m.log_end_offset for m in voters), reverse=True)
        if any(m.role == "Leader" for m in voters):
            # What a majority has; the leader's own high watermark may be a little behind.
            yield ends[len(ends) // 2], path
