"""The session of a job: started elsewhere it says so at once, over few rows it runs few jobs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.spark import contracts, session, views
from replication.spark.failures import ended_by
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay


def submitted(cwd: Path, tables: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """create_views.py by spark-submit, started in a folder with options of spark-submit's own."""
    root = project_root()
    submit = Path(sys.executable).with_name("spark-submit")
    command = [
        str(submit), "--properties-file", str(root / "conf" / "spark-defaults.conf"), *options,
        str(root / "jobs" / "create_views.py"), "--tables", str(tables),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable,
                   "PATH": f"{submit.parent}:{os.environ['PATH']}"}  # fmt: skip
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.spark
def test_a_job_whose_spark_does_not_start_says_what_to_mend(tmp_path: Path) -> None:
    run = submitted(project_root(), tmp_path, "--driver-memory", "100m")
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith(
        "create_views.py: Spark does not start as it is called (SparkIllegalArgumentException: "
        "[INVALID_DRIVER_MEMORY] System memory 104857600 must be at least 471859200"
    )


@pytest.mark.parametrize("name", session.NEEDED)
@pytest.mark.parametrize("given", ["", "misspelt", "a typo at the end"])
def test_of_a_setting_that_is_misspelt_its_name_and_its_value_are_told(
    name: str, given: str
) -> None:
    sound = {name: wanted for name, (wanted, _) in session.NEEDED.items()}
    assert session.wrong_settings(sound.__getitem__) == []
    several = {**sound, "spark.sql.extensions": f"org.x.Own,{session.DELTA_EXTENSION}"}
    assert session.wrong_settings(several.__getitem__) == []
    value = f"{sound[name]}s" if given.startswith("a typo") else given
    [told] = session.wrong_settings({**sound, name: value}.__getitem__)
    assert told == f"{name} is {value or 'not set'}, not {sound[name]}"


def test_a_master_that_does_not_answer_is_named_and_may_come_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Spark tells it on a hundred lines, of which none is an error of Python's: it stops itself."""
    stopped = Py4JError(
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
    )
    told = session.SessionError(session.not_started(stopped, "spark://127.0.0.1:9999"))
    assert ended_by(told, "replay.py") == 5
    assert capsys.readouterr().err == (
        "replay.py: --master spark://127.0.0.1:9999 does not answer, or has no room for this job: "
        "see to it that it runs, or name another one; start it again when that is mended\n"
    )


@pytest.mark.spark
def test_a_job_started_from_another_folder_says_so_before_spark_starts(tmp_path: Path) -> None:
    """conf/spark-defaults.conf names the jars from where spark-submit is started. Without this look
    Spark starts, and its log is some ninety lines."""
    run = submitted(tmp_path, tmp_path)
    assert run.returncode == 2
    assert "SparkContext" not in run.stderr
    # Answers alone go to stdout, though spark-submit ties Python's stderr to it.
    assert run.stdout == ""
    assert run.stderr.endswith(
        f"create_views.py: no jars of Delta Lake in {tmp_path}/.jars: the paths in "
        "conf/spark-defaults.conf begin where spark-submit is started. After `make setup` start it "
        "in the checkout, or from any folder by .venv/bin/replication-replay and its like\n"
    )


@pytest.mark.spark
def test_tables_of_few_rows_cost_few_jobs_and_those_without_a_row_none(
    spark: SparkSession, folder: Path
) -> None:
    write_events(folder / "in" / "1.jsonl", made_trace(0))
    run_replay(spark, folder)
    tables = folder / "replayed"
    assert views.few_rows(spark, tables)
    few = session.for_few_rows(spark)
    found = views.opened(few, tables)
    asked = "SELECT run, count(*) FROM {} WHERE run <> 'u' GROUP BY run ORDER BY run"
    found.register(asked=" ".join(contracts.tables()))
    for table, most in (("divergences", 0), ("at_risk", 0), ("replica_states", 2)):
        spark.sparkContext.setJobGroup(table, table)
        rows = few.sql(asked.format(table)).collect()
        assert bool(rows) == (most > 0)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(table)
        assert len(jobs) <= most, table
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.mark.spark
def test_only_the_views_that_are_asked_for_are_made(spark: SparkSession, folder: Path) -> None:
    """With those that they rest on."""
    write_events(folder / "in" / "1.jsonl", made_trace(0))
    run_replay(spark, folder)
    other = spark.newSession()
    found = views.opened(other, folder / "replayed")
    found.register(asked="SELECT * FROM under_replicated")
    made = {row["viewName"] for row in other.sql("SHOW VIEWS").collect()}
    assert {"under_replicated", "isr_and_leadership"} <= made
    assert not {"loss_ledger", "lost_records", "findings"} & made


@pytest.mark.spark
def test_a_table_of_more_rows_is_left_to_spark(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(folder / "in" / "1.jsonl", made_trace(0))
    run_replay(spark, folder)
    rows = Store(spark, folder / "replayed").newest("replica_states").count()
    monkeypatch.setattr("replication.spark.batch_rows.FEW_ROWS", rows - 1)
    assert not views.few_rows(spark, folder / "replayed")
