"""One Spark session for all tests that need one, with the settings that the jobs ship with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.jobs_in_process import start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the jobs have it."""
    session = start_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an empty source folder in it."""
    (tmp_path / "in").mkdir()
    return tmp_path
