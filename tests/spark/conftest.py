"""One Spark session for all tests that need one, with the settings that the jobs ship with."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication import paths

# Short runs: the first compiler of the JVM is enough, and a small heap.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def shipped_settings() -> dict[str, str]:
    """conf/spark-defaults.conf, with its relative paths made absolute."""
    root = paths.project_root()
    found = {}
    for line in (root / "conf" / "spark-defaults.conf").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split(None, 1)
            found[name] = value.strip()
    found["spark.jars"] = ",".join(str(jar) for jar in paths.spark_jars())
    options = found.get("spark.driver.extraJavaOptions", "").replace("=conf/", f"={root}/conf/")
    found["spark.driver.extraJavaOptions"] = f"{options} {JAVA_OPTIONS}"
    found["spark.driver.memory"] = "1500m"
    # A few rows a query: compiling code for them would cost more than running it.
    found["spark.sql.codegen.wholeStage"] = "false"
    found["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    return found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the jobs have it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("tests")
    for name, value in shipped_settings().items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an empty source folder in it."""
    (tmp_path / "in").mkdir()
    return tmp_path
