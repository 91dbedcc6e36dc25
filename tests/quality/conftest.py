"""Tables that the tests look at: every real incident folded at once, and a healthy stream."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event
from tests.spark import conftest as spark_conftest
from tests.spark.jobs_in_process import run_replay, run_stream

# The main module of a pytest-xdist worker has no file. Spark Connect, which Great Expectations
# imports, takes that for a doctest and ends the process with status 0.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__

spark = spark_conftest.spark
folder = spark_conftest.folder
INCIDENTS = Path(__file__).parents[1] / "incidents"
EXPECTED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (INCIDENTS / "expected.json").read_text()
)
STREAMED = ("kip101_scenario_1__1.1.1__control", "last_replica_standing__4.1.1__elr_on")


def incident_of(cluster_id: str) -> str:
    """The incident that a cluster id belongs to."""
    return next(i for i in EXPECTED if events_of(i)[0].cluster_id == cluster_id)


@cache
def events_of(incident: str) -> tuple[Event, ...]:
    """The events of a captured incident."""
    return tuple(import_evidence([INCIDENTS / incident]).events())


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """The session of all tests."""
    return spark


@pytest.fixture(scope="session")
def all_incidents(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of all incidents, replayed at once with their events."""
    base = tmp_path_factory.mktemp("incidents")
    (base / "in").mkdir()
    for incident in EXPECTED:
        write_events(base / "in" / f"{incident}.jsonl", list(events_of(incident)))
    run_replay(spark, base, "tables", keep_events=True)
    return base / "tables"


@pytest.fixture(scope="session")
def healthy(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of two healthy incidents that came as a stream, one micro-batch each."""
    base = tmp_path_factory.mktemp("healthy")
    (base / "in").mkdir()
    for incident in STREAMED:
        write_events(base / "in" / f"{incident}.jsonl", list(events_of(incident)))
    run_stream(spark, base, max_files_per_trigger="1", fold_max_files_per_trigger="1")
    return base / "tables"
