"""The Spark session of a job: started with the settings of conf/, or refused with what to do."""

from collections.abc import Sequence

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from replication.places import Place
from replication.spark import hadoop_files, workers

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
STATE_PROVIDER = "RocksDBStateStoreProvider"
COMMAND = ".venv/bin/spark-submit --properties-file conf/spark-defaults.conf"


class SessionError(RuntimeError):
    """Spark runs without what the jobs need; the text says what is missing and how to get it."""


LOOPBACK = "127.0.0.1"


def start(name: str, written: Sequence[Place] = (), read: Sequence[Place] = ()) -> SparkSession:
    """The session of spark-submit. written, read: the folders that the job's workers must share.

    Raises SessionError where Delta Lake is not configured, its jars are not loaded, the state store
    is not RocksDB, workers lack packages or see other folders, a store is not safe to write, or
    the catalog lacks a schema.
    Sets nothing: settings in code would silently beat `--conf`.
    """
    _be_reached_by_workers()
    _print_no_errors_as_json()
    spark = SparkSession.builder.appName(name).getOrCreate()
    problem = _problem(spark)
    if problem:
        spark.stop()
        raise SessionError(
            f"{problem}; run `make setup`, then `{COMMAND} jobs/...` from the checkout"
        )
    hadoop_files.bind(spark)
    try:
        written, read = [each.absolute() for each in written], [each.absolute() for each in read]
    except OSError as error:
        spark.stop()
        raise SessionError(f"{error.filename}: {error.strerror}") from None
    problem = hadoop_files.problem(spark, written, read) or workers.problem(spark, written, read)
    if problem:
        spark.stop()
        raise SessionError(problem)
    return spark


def _print_no_errors_as_json() -> None:
    """Each error of Spark is told once, by the job: pyspark prints it before as JSON, 7 KB each."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _be_reached_by_workers() -> None:
    """Takes back the loopback address of conf/, which suits a laptop in any network, where workers
    may be elsewhere: then Spark finds the host's own, or --conf says it."""
    told = SparkConf()
    if told.get("spark.master", "local").startswith("local"):
        return
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    assert jvm is not None
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        if told.get(key) == LOOPBACK:
            jvm.java.lang.System.clearProperty(key)


def _problem(spark: SparkSession) -> str | None:
    if DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        return "Spark was started without conf/spark-defaults.conf: no Delta Lake extension"
    if not hadoop_files.has_class(spark, "io.delta.tables.DeltaTable"):
        return "Delta Lake's jars are not loaded"
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass", "") or ""
    if not provider.endswith(STATE_PROVIDER):
        return f"the state store provider is {provider or 'not set'}, not {STATE_PROVIDER}"
    return None
