"""The Spark session of a job: started with the settings of conf/, or refused with what to do."""

from pyspark.sql import SparkSession

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
STATE_PROVIDER = "RocksDBStateStoreProvider"
COMMAND = ".venv/bin/spark-submit --properties-file conf/spark-defaults.conf"


class SessionError(RuntimeError):
    """Spark runs without what the jobs need; the text says what is missing and how to get it."""


def start(name: str) -> SparkSession:
    """The session of spark-submit.

    Raises SessionError where Delta Lake is not configured, its jars are not loaded, or the state
    store is not RocksDB. Sets nothing: settings in code would silently beat `--conf`.
    """
    spark = SparkSession.builder.appName(name).getOrCreate()
    problem = _problem(spark)
    if problem:
        spark.stop()
        raise SessionError(
            f"{problem}; run `make setup`, then `{COMMAND} jobs/...` from the checkout"
        )
    return spark


def _problem(spark: SparkSession) -> str | None:
    if DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        return "Spark was started without conf/spark-defaults.conf: no Delta Lake extension"
    try:
        spark.sparkContext._jvm.java.lang.Class.forName(  # type: ignore[union-attr]
            "io.delta.tables.DeltaTable",
            True,
            spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader(),  # type: ignore[union-attr]
        )
    except Exception:
        return "Delta Lake's jars are not loaded"
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass", "") or ""
    if not provider.endswith(STATE_PROVIDER):
        return f"the state store provider is {provider or 'not set'}, not {STATE_PROVIDER}"
    return None
