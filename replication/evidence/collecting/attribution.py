"""Says whose everything is that was read: which broker's, of which cluster, how that is known.

By what a file says of itself, then by the evidence beside it, and only where nothing else speaks
by a folder's name that looks like a broker's, which is said. A date or a version is no broker.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.clusters_apart import of_nobody
from replication.evidence.collecting.collection import (
    NOTHING_TOLD,
    BrokerDirectory,
    BrokerDump,
    Collection,
    NoEvidence,
    Spread,
    Told,
    read_all,
)
from replication.evidence.collecting.owners import Owner, Surroundings, broker_by_name
from replication.evidence.collecting.renamed_clusters import renamed_clusters
from replication.evidence.log_directories.digest_reader import restore_cluster_metadata
from replication.evidence.log_directories.log_directory import LogDirectory
from replication.evidence.log_directories.small_files import MetaProperties
from replication.evidence.metadata_log.cluster_metadata import read_cluster_metadata
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.metadata_log.several_copies import are_of_two_lives, longest_history
from replication.evidence.tools.dumped_logs import SegmentDump
from replication.evidence.unreadable import Unreadable
from replication.evidence.zookeeper.files import LogEnd, ZnodeChange
from replication.evidence.zookeeper.history import histories

BY_NAME = "its folder's name"


def collect(
    paths: Iterable[Path],
    spread: Spread = map,
    facts_folder: Path | None = None,
    told: Told = NOTHING_TOLD,
) -> Collection:
    """Reads all evidence at or below paths and says whose it is.

    spread: applies a function to many files or partitions, as `map` does, perhaps on many machines;
    answers in the same order. facts_folder: where facts of broker logs are kept meanwhile, in
    memory without. told: what the user says where the files do not. Raises NoEvidence when a path
    does not exist or nothing in them is evidence.
    """
    roots = list(paths)
    result = read_all(roots, spread, facts_folder, told)
    for log in result.found_logs if told.laid_out else ():
        log.runs = []  # Shipped lines are in order of arrival: their stamps may fall.
    _attribute(result, roots, spread, told)
    if not (
        result.directories
        or result.found_logs
        or result.dumps
        or result.event_dumps
        or result.zookeeper
        or result.descriptions
        or result.acknowledgement_logs
        or result.consumption_logs
    ):
        named = ", ".join(str(r) for r in roots)
        aside = [f"{u.path}: {u.reason}" for u in [*result.unreadable, *result.ignored]]
        raise NoEvidence(
            f"{named}: no evidence of a Kafka cluster found (looked at {result.files} "
            f"file{'' if result.files == 1 else 's'} for "
            "broker logs, log directories, digests, acknowledgement logs, event dumps)"
            + "".join(f"; {result.unpacked.shown(n)}" for n in [*result.notes, *aside][:3])
        )
    return result


class _Whose:
    """What is known of folders: (broker, cluster id) by folder. top: the folders handed over and
    those around them, which say nothing of one broker alone."""

    def __init__(self, result: Collection, roots: list[Path], told: Told) -> None:
        self.result = result
        self.one = renamed_clusters(result.found_logs, result.found_directories, result.notes)
        for log in result.found_logs:
            log.cluster_id = self.cluster(log.cluster_id)
        self.folders: dict[Path, tuple[int, str]] = {}
        self.of_several: dict[tuple[Path, str], list[BrokerLog]] = {}
        self.of_no_cluster: dict[Path, list[str]] = {}
        self.roots = [r.resolve() for r in roots]
        self.top = {*self.roots, *(r.parent for r in self.roots)}
        named = {self.cluster(d.meta.cluster_id) for d in result.found_directories if d.meta}
        self.named_by_directories = bool(named - {None, ""})
        named.update(log.cluster_id for log in result.found_logs)
        clusters = {c for c in named if c}
        self.only = next(iter(clusters)) if len(clusters) == 1 else ""
        self.clusters: dict[Path, set[str]] = {}
        for log in result.found_logs:
            folder = self.place(Path(log.path)).parent
            self.clusters.setdefault(folder, set()).update({log.cluster_id} - {""})
        self.told = {p.resolve(): broker for p, broker in told.brokers.items()}

    def cluster(self, named: str | None) -> str:
        """The cluster that is so named; "" where none is."""
        return self.one.get(named or "", named or "")

    def place(self, path: Path) -> Path:
        """Where a file lies as the user knows it, archives being folders."""
        return self.result.unpacked.place(path).resolve()

    def told_of(self, place: Path) -> int | None:
        """The broker that the user says a file or a folder around it is of."""
        around = (self.told.get(p) for p in (place, *place.parents))
        return next((broker for broker in around if broker is not None), None)

    def nearest(self, folder: Path) -> tuple[int, str] | None:
        """What is known of the folder or its nearest ancestor below the folders handed over."""
        while folder not in self.top and folder != folder.parent:
            if folder in self.folders:
                return self.folders[folder]
            folder = folder.parent
        return self.folders.get(folder)

    def are_several(self, folder: Path) -> bool:
        """Whether logs of several clusters lie in the folder."""
        return len(self.clusters.get(folder, ())) > 1

    def by_name(self, folder: Path) -> int | None:
        """By the names of folders up to the one handed over."""
        for part in (folder, *folder.parents):
            if not any(root in (part, *part.parents) for root in self.roots):
                return None
            broker = broker_by_name(part.name)
            if broker is not None:
                return broker
        return None


def _attribute(result: Collection, roots: list[Path], spread: Spread, told: Told) -> None:
    """Says of each directory and log which broker of which cluster it is of."""
    directories, logs = result.found_directories, result.found_logs
    whose = _Whose(result, roots, told)
    for log in logs:
        place = whose.place(Path(log.path))
        broker = whose.told_of(place)
        log.broker = log.broker if broker is None else broker
        if log.broker is not None:
            known = whose.folders.get(place.parent, (log.broker, ""))
            cluster = "" if whose.are_several(place.parent) else log.cluster_id
            whose.folders[place.parent] = (known[0], known[1] or cluster)
    histories = spread(_metadata, [(d.path, d.has_cluster_metadata) for d in directories])
    for directory, history in zip(directories, histories, strict=True):
        _attribute_directory(directory, history, whose)
    for log in logs:
        _attribute_log(log, whose)
    for several in whose.of_several.values():
        result.notes += _of_several(several)
    result.notes += [_of_no_cluster(paths) for paths in whose.of_no_cluster.values()]
    by_cluster: dict[str, list[MetadataHistory]] = {}
    for found in result.directories:
        if found.metadata is not None:
            cluster = found.cluster_id
            by_cluster.setdefault(cluster, []).append(found.metadata)
    for dump in result.metadata_dumps:
        by_cluster.setdefault(whose.cluster(dump.cluster_id) or whose.only, []).append(dump)
    for cluster, histories in sorted(by_cluster.items()):
        two_lives = _of_two_lives(cluster, histories)
        if two_lives is not None and not told.laid_out:
            raise NoEvidence(two_lives)
        if two_lives is not None:
            # Whoever ships may end that, or nobody: the others' evidence must not wait for it.
            result.notes.append(f"{two_lives}. No metadata log was used")
            _forget_metadata(result, cluster)
            continue
        history = longest_history(histories)
        result.histories[cluster] = history
        result.unreadable += [u for u in history.unreadable if u not in result.unreadable]
    _attribute_zookeeper(result, whose)
    _attribute_dumps(result, roots)


def _of_two_lives(cluster: str, histories: list[MetadataHistory]) -> str | None:
    """What is to be done where a cluster's storage was formatted anew under the same id: what one
    life's metadata log tells of topics and brokers is not true of the other."""
    copies = sorted(histories, key=lambda copy: copy.path)
    for other in copies[1:]:
        if are_of_two_lives(copies[0], other):
            return (
                f"{copies[0].path} and {other.path} are metadata logs of cluster {cluster} that "
                "share no record: it was formatted anew under the same cluster id, or two clusters "
                "bear it. Hand over the evidence of each by itself, not in one call"
            )
    return None


def _forget_metadata(result: Collection, cluster: str) -> None:
    for directory in result.directories:
        if directory.cluster_id == cluster:
            directory.metadata = None


def _attribute_zookeeper(result: Collection, whose: _Whose) -> None:
    """Says of ZooKeeper's files which cluster they are of; those of an ensemble are one."""
    by_folder: dict[Path, list[ZnodeChange | LogEnd]] = {}
    for step in result.zookeeper_steps:
        by_folder.setdefault(Path(step.file).parent, []).append(step)
    of_cluster: dict[str, list[ZnodeChange | LogEnd]] = {}
    for steps in by_folder.values():
        found = histories(steps)
        for history in found:
            # A log that tells of nothing of Kafka's is of the only cluster there.
            mine = [s for s in steps if s.file in history.files or len(found) == 1]
            named = whose.cluster(history.cluster_id) or whose.only
            of_cluster.setdefault(named, []).extend(mine)
    for cluster, steps in sorted(of_cluster.items()):
        found = histories(steps)
        if len(found) == 1:
            result.zookeeper[cluster] = found[0]
        elif found:
            result.notes.append(
                f"{found[0].files[0]}: ZooKeeper holds {len(found)} clusters that name no "
                "id. Nobody can tell which of them is which, so its history was not used"
            )


def _attribute_log(log: BrokerLog, whose: _Whose) -> None:
    """Whose a text log is: by its lines, the evidence beside it, its own or its folder's name."""
    place = whose.place(Path(log.path))
    folder = whose.nearest(place.parent)
    log.known_by = "its lines"
    if not (log.cluster_id or log.cluster_unknown) and whose.are_several(place.parent):
        log = of_nobody(log)
        whose.of_no_cluster.setdefault(place.parent, []).append(log.path)
    if not log.cluster_unknown:
        log.cluster_id = log.cluster_id or (folder[1] if folder else "") or whose.only
    if log.several and log.count and whose.told_of(place) is None:
        if not log.cluster_unknown:
            whose.of_several.setdefault((place.parent, log.cluster_id), []).append(log)
        whose.result.logs.append(log)
        return
    if whose.told_of(place) is not None:
        log.known_by = "--broker"
    if log.broker is None and folder is not None:
        log.broker, log.known_by = folder[0], "its folder's other evidence"
    if log.broker is None:
        log.broker, log.known_by = broker_by_name(place.name), "its name alone"
    if log.broker is None:
        log.broker, log.known_by = whose.by_name(place.parent), "its folder's name alone"
    if log.broker is not None and log.known_by.endswith("alone"):
        whose.result.notes.append(f"{log.path}: taken for broker {log.broker} by {log.known_by}")
    if log.count:
        whose.result.logs.append(log)
    else:
        told = (
            "a broker's log without a line about replicas (log-cleaner.log has "
            "none), or in a layout that is not read (Kafka's own is [%d] %p %m "
            "(%c)%n)"
        )
        whose.result.ignored.append(Unreadable(log.path, "file", told))


def _of_no_cluster(paths: list[str]) -> str:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return (
        f"{min(paths)}{more}: it names no cluster, and logs of several clusters "
        "are beside it. Nobody can tell which cluster it is of, and no verdict "
        "uses it"
    )


def _of_several(logs: list[BrokerLog]) -> Iterator[str]:
    """What is said of a folder's logs that several brokers wrote."""
    told = [log for log in logs if log.nobodys or len(_writers(log)) > 1]
    if not told:
        return
    known = sorted(set().union(*(_writers(log) for log in told)))
    writers = ", ".join(str(w) for w in known)
    writers = f"brokers {writers}" if len(known) > 1 else f"broker {writers} and another"
    count, nobodys = sum(log.count for log in told), sum(log.nobodys for log in told)
    it, its = ("it", "its") if len(told) == 1 else ("them", "their")
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    named = f"{min(log.path for log in told)}{more}: {writers} wrote {it}"
    if nobodys:
        yield (
            f"{named}; of {its} {count} telling lines {nobodys} may be of more than one of them: "
            "they are used for nobody"
        )
    else:
        yield f"{named}, and what ties {its} {count} telling lines to them was found"


def _writers(log: BrokerLog) -> set[int]:
    return {w for w in log.writers if w is not None}.union(*log.unsure.values())


def _attribute_dumps(result: Collection, roots: list[Path]) -> None:
    """Says of each file with dumped segments which broker it is of."""
    known = Surroundings([r if r.is_dir() else r.parent for r in roots])
    shown = result.unpacked.place
    for found in result.directories:
        path = shown(found.directory.path).resolve()
        known.places += [(p, found.broker, found.cluster_id) for p in (path, path.parent)]
        known.clusters.add(found.cluster_id)
        if found.directory.partitions:
            known.brokers.add(found.broker)
    for log in result.logs:
        known.clusters.add(log.cluster_id)
        for writer in log.writers:
            broker = writer if writer is not None else log.broker
            if broker is not None:
                place = shown(Path(log.path)).parent.resolve()
                known.places.append((place, broker, log.cluster_id))
                known.brokers.update([broker] if log.homes else [])
        for writer, home in log.homes:
            broker = writer if writer is not None else log.broker
            if broker is not None:
                known.homes.setdefault(home, set()).add(broker)
    for history in result.histories.values():
        known.brokers.update(b.broker for b in history.brokers)
    for listed in result.log_dirs:
        known.homes.setdefault(listed.directory, set()).add(listed.broker)
    by_part: dict[tuple[Path, int | None], list[SegmentDump]] = {}
    for segment in result.found_dumps:
        by_part.setdefault((segment.path, segment.headed), []).append(segment)
    for (path, headed), segments in by_part.items():
        homes = {str(PurePosixPath(s.directory).parent) for s in segments}
        several = len({broker for place, broker in by_part if place == path} - {None}) > 1
        owner = known.owner(shown(path), homes, headed, one_of_several=several)
        if isinstance(owner, Owner):
            result.dumps.append(BrokerDump(owner.broker, owner.cluster_id, segments))
            if owner.known_by != "the evidence beside it":
                result.notes.append(
                    f"{path}: taken for dumps of broker {owner.broker} by {owner.known_by}"
                )
        else:
            result.notes.append(f"{path}: {owner}; these dumps were not used")


def _attribute_directory(
    directory: LogDirectory, history: MetadataHistory | None, whose: _Whose
) -> None:
    meta = directory.meta
    path = whose.place(directory.path)
    around = whose.nearest(path.parent)
    number, known_by = (meta.broker_id if meta else None), "meta.properties"
    told = whose.told_of(path)
    if told is not None:
        number, known_by = told, "--broker"
    if number is None and around is not None:
        number, known_by = around[0], "the broker log beside it"
    if number is None:
        number, known_by = whose.by_name(path), BY_NAME
    if number is None:
        if directory.partitions:
            whose.result.unreadable.append(
                Unreadable(
                    str(directory.path),
                    "file",
                    "no meta.properties, no broker log beside it and no folder named like a "
                    "broker (broker-2): say whose log directory it is, by --broker N FOLDER",
                )
            )
        return
    if known_by != "meta.properties":
        whose.result.notes.append(f"{directory.path}: taken for broker {number} by {known_by}")
    cluster = _cluster_of(meta, around, whose)
    if cluster is None:
        whose.result.unreadable.append(
            Unreadable(
                str(directory.path),
                "file",
                "its meta.properties names no cluster, as other directories' do, and "
                f"nothing beside it is of broker {number}: nobody can tell which cluster "
                "it is of",
            )
        )
        return
    # A folder's own name tells nothing of the folder that it is in: others of it have theirs.
    if path.parent not in whose.top and known_by != BY_NAME:
        whose.folders.setdefault(path.parent, (number, cluster))
    whose.result.directories.append(BrokerDirectory(number, cluster, directory, history, known_by))


def _cluster_of(
    meta: MetaProperties | None, around: tuple[int, str] | None, whose: _Whose
) -> str | None:
    """The cluster a directory is of, "" where none is named anywhere; None: it may be another one.

    Old brokers (1.1 still) do not write the cluster id. Among evidence that names clusters, one
    that does not is taken in only beside evidence of the same broker.
    """
    if meta is not None and meta.cluster_id:
        return whose.cluster(meta.cluster_id)
    if meta is not None and whose.named_by_directories:
        beside = around[1] or whose.only if around and around[0] == meta.broker_id else ""
        return beside or None
    return (around[1] if around else "") or whose.only


def _metadata(directory_and_log: tuple[Path, Path | None]) -> MetadataHistory | None:
    """The controllers' log of a directory, or of the digest that stands for it."""
    directory, where = directory_and_log
    if where is None or not directory.is_file():
        return None if where is None else read_cluster_metadata(where)
    with TemporaryDirectory() as into:
        # Lines of a digest have been put together already.
        restored = where if where.is_dir() else restore_cluster_metadata(directory, Path(into))
        if restored is None:
            return None
        history = read_cluster_metadata(restored)
    # Where it was unpacked is gone, and another place in every run.
    return replace(
        history,
        path=str(directory),
        unreadable=tuple(
            replace(u, path=u.path.replace(str(restored.parent), str(directory), 1))
            for u in history.unreadable
        ),
    )
