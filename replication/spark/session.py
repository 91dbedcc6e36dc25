"""The Spark session of a job: started with the settings of conf/, or refused with what to do."""

import logging
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from replication.places import Place
from replication.spark import hadoop_files, workers
from replication.spark.failures import first_cause

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
# Setting -> what it must be, and the class's name by itself: Spark's own classes change packages.
NEEDED = {
    "spark.sql.extensions": (DELTA_EXTENSION, "DeltaSparkSessionExtension"),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "RocksDBStateStoreProvider",
    ),
}
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
    SparkContext._ensure_initialized()
    told = SparkConf()
    if DELTA_EXTENSION in (told.get("spark.sql.extensions", "") or "") and not has_delta():
        # Spark would start all the same, and say on ninety lines what it lacks.
        raise SessionError(
            f"no jars of Delta Lake in {told.get('spark.jars') or Path.cwd() / '.jars'}: the paths "
            "in conf/spark-defaults.conf begin where spark-submit is started. After `make setup` "
            "start it in the checkout, or from any folder by .venv/bin/replication-replay and its "
            "like"
        )
    _be_reached_by_workers(told)
    _print_no_errors_as_json()
    try:
        spark = SparkSession.builder.appName(name).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise SessionError(not_started(error, told.get("spark.master", "local"))) from None
    signal.signal(signal.SIGINT, _interrupted)
    problem = _problem(spark)
    if problem:
        spark.stop()
        raise SessionError(problem)
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


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Ctrl-C ends the JVM as well, so pyspark's own handler, which asks it to cancel its jobs, and
    Py4J would tell of it on a hundred lines."""
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


def not_started(error: Exception, master: str) -> str:
    """Why Spark did not start, in one line with what to do. master: as --master names it."""
    cause = first_cause(error)
    if "stopped SparkContext" in str(error) and not master.startswith("local"):
        return (
            f"--master {master} does not answer, or has no room for this job: see to it that it "
            "runs, or name another one"
        )
    return (
        f"Spark does not start as it is called ({cause}): mend the option or setting that this "
        "names, of spark-submit or in --properties-file"
    )


# For queries over few rows. Spark would compile Java for each, in seconds, and run them in several
# tasks, each stage of adaptive execution as a job of its own.
FOR_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def for_few_rows(spark: SparkSession) -> SparkSession:
    """A session beside the job's, with views of its own, for queries over tables of few rows."""
    made = spark.newSession()
    for name, value in FOR_FEW_ROWS.items():
        made.conf.set(name, value)
    return made


def is_alive(spark: SparkSession) -> bool:
    """Whether the session can still be asked: not where it was stopped, or its JVM has ended."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def _print_no_errors_as_json() -> None:
    """Each error of Spark is told once, by the job: pyspark prints it before as JSON, 7 KB each."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def has_delta() -> bool:
    """Whether Delta Lake is among the jars of this JVM."""
    return hadoop_files.has_class(SparkContext._jvm, "io.delta.tables.DeltaTable")


def _be_reached_by_workers(told: SparkConf) -> None:
    """Takes back the loopback address of conf/, which suits a laptop in any network, where workers
    may be elsewhere: then Spark finds the host's own, or --conf says it."""
    if told.get("spark.master", "local").startswith("local"):
        return
    jvm = SparkContext._jvm
    assert jvm is not None
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        if told.get(key) == LOOPBACK:
            jvm.java.lang.System.clearProperty(key)


def _problem(spark: SparkSession) -> str | None:
    wrong = wrong_settings(lambda name: spark.conf.get(name, "") or "")
    if wrong:
        return (
            f"{'; '.join(wrong)}: mend the file of --properties-file, or give "
            "conf/spark-defaults.conf, which sets it"
        )
    if not has_delta():
        return f"no jars of Delta Lake: run `make setup`, then `{COMMAND} jobs/..` in the checkout"
    return None


def wrong_settings(setting: Callable[[str], str]) -> list[str]:
    """In words, each of Spark's settings without which no job works, where it is another. setting:
    of a name, "" where it is not set."""
    found = []
    for name, (wanted, least) in NEEDED.items():
        given = setting(name)
        if least not in [each.strip().rpartition(".")[2] for each in given.split(",")]:
            found.append(f"{name} is {given or 'not set'}, not {wanted}")
    return found
