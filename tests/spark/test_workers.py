"""Workers elsewhere: a job that they cannot do is refused in words before its first commit."""

import argparse
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from replication import places
from replication.cli import main
from replication.evidence.event_dumps import read_events
from replication.paths import project_root
from replication.protocol.ground.events import Event
from replication.spark import workers
from tests.spark import standalone

ROOT = project_root()
INCIDENT = ROOT / "tests" / "incidents" / "unclean_election__4.1.1"


@pytest.mark.parametrize("text", ["dbfs:/t", "file://h/t", "hdfs:t", "s3a:bucket/t"])
def test_a_path_that_is_none_is_refused_not_made_a_local_folder(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="every worker"):
        places.folder(text)


@pytest.mark.parametrize("text", ["hdfs://h:1/t", "hdfs:/t", "s3a://b/t", "abfss://c@a.net/t"])
def test_a_path_of_a_hadoop_file_system_is_no_local_one(text: str) -> None:
    assert places.folder(text) == places.HadoopPath(text)
    assert places.folder(text.upper()) != Path(text.upper())


@pytest.mark.parametrize(
    ("text", "path"),
    [("/a/b", "/a/b"), ("a", "a"), ("file:/a/b%20c", "/a/b c"), ("file:///a", "/a"),
     ("a:b/c", "a:b/c"), ("./a:b", "a:b"), ("kafka", "kafka")],
)  # fmt: skip
def test_paths_of_this_machine_are_taken(text: str, path: str) -> None:
    assert places.folder(text) == Path(path)


@pytest.mark.parametrize("text", ["/a/[1]/ck", "{ck}", "file:/a/ck%2A", "/a?/ck", "a\\\\b"])
def test_a_checkpoint_folder_that_reads_as_a_pattern_is_refused(text: str) -> None:
    """Spark's file source read each of two notes below such a path twice."""
    with pytest.raises(argparse.ArgumentTypeError, match="signs of a pattern"):
        places.plain_folder(text)
    assert places.plain_folder("/a b/50%/ck") == Path("/a b/50%/ck")


def looked(folder: Path, read: list[str]) -> list[workers.Report]:
    probe = workers._Probe(folder)
    try:
        return list(workers.looker([(str(folder), probe.name)], read)(iter(())))
    finally:
        probe.remove()


def test_a_shared_folder_is_passed_and_left_as_it_was(tmp_path: Path) -> None:
    probe = workers._Probe(tmp_path / "new" / "tables")
    reports = list(workers.looker([(str(probe.folder), probe.name)], [str(tmp_path)])(iter(())))
    assert workers.judged(reports) is None
    probe.remove()
    assert not (tmp_path / "new" / "tables").exists()
    (tmp_path / "kept").mkdir()
    looked(tmp_path / "kept", [])
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_a_worker_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 0.1)
    host = socket.gethostname()
    [(_, _, strange, _)] = reports = looked(tmp_path, [str(tmp_path / "not there")])
    assert strange == [str(tmp_path / "not there")]
    assert f"not the driver's on the worker on {host}" in str(workers.judged(reports))
    # A disk of its own: the driver's file is not there; or the driver does not see the worker's.
    alone = list(workers.looker([(str(tmp_path), "_probe-elsewhere")], [])(iter(())))
    assert alone[0][2] == [str(tmp_path)]
    unseen = [("w", [], [], {str(tmp_path / "by the worker"): "w"})]
    assert "driver and workers must share" in str(workers.judged(unseen))
    monkeypatch.setattr(workers, "NEEDED", ("pandas", "no_such_package"))
    assert "has no no_such_package" in str(workers.judged(looked(tmp_path, [])))


# --- a cluster of processes -----------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[standalone.Cluster, Path]]:
    """A master and two workers; `hidden` is a folder of the driver's that the workers see empty."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    with standalone.cluster(tmp_path, hidden) as started:
        yield started, hidden


def events_in(files: Iterable[Path]) -> list[tuple[int, object, int | None]]:
    """Events by their place in the trace, without the names of files."""
    read = [event for file in files for event in read_events(file)]
    assert all(isinstance(event, Event) for event in read)
    return sorted((e.sequence, repr(e.fact), e.observed_at) for e in read if isinstance(e, Event))


@pytest.mark.spark
@pytest.mark.sweep
@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="mounts need root and unshare"
)
def test_a_clusters_import_is_the_laptops(
    cluster: tuple[standalone.Cluster, Path], tmp_path: Path
) -> None:
    master, _ = cluster
    imported = standalone.submitted(
        "import_artifacts", master, INCIDENT, "--out", tmp_path / "events"
    )
    assert imported.returncode == 0, imported.stderr
    near = tmp_path / "near.jsonl"
    assert main(["import", str(INCIDENT), "--out", str(near)]) == 0
    assert events_in((tmp_path / "events").glob("*.parquet")) == events_in([near])


def test_metrics_name_a_folder_alike_by_whichever_path_it_was_given(tmp_path: Path) -> None:
    """By this label the rules know that a stream and the checks are of the same tables."""
    (tmp_path / "run" / "tables").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    paths = ["run/tables", "run/../run/tables", "link/tables", "run/./tables"]
    assert {places.label(tmp_path / path) for path in paths} == {str(tmp_path / "run" / "tables")}
