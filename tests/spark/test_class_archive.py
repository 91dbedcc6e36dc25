"""The archive of Spark's classes that `make setup` makes is named by the settings, and used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replication.java_options import QUICKLY
from replication.paths import jars_dir, project_root
from replication.spark import demo
from replication.spark.class_archive import ARCHIVE, QUIET
from replication.submit import command_of

NAMED = f"-XX:SharedArchiveFile=.jars/{ARCHIVE} {QUIET}"


def test_all_that_starts_spark_names_the_archive() -> None:
    shipped = (project_root() / "conf" / "spark-defaults.conf").read_text(encoding="utf-8")
    assert NAMED in shipped
    assert NAMED in demo.JAVA_OPTIONS
    if (jars_dir() / ARCHIVE).is_file():
        options = " ".join(command_of("replay", [], "spark-submit"))
        assert f"-XX:SharedArchiveFile={jars_dir() / ARCHIVE} {QUIET}" in options


def test_jobs_that_end_soon_take_java_s_first_compiler_alone_and_a_stream_both() -> None:
    for job, quick in (("check_quality", True), ("report", True), ("stream", False)):
        options = " ".join(command_of(job, [], "spark-submit"))
        assert (QUICKLY in options) == quick, job


@pytest.mark.spark
def test_a_start_takes_its_classes_from_it_and_one_that_does_not_fit_is_no_word_worth(
    tmp_path: Path,
) -> None:
    loaded = tmp_path / "loaded"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": f"-Xlog:class+load:file={loaded}"}
    submit = Path(sys.executable).with_name("spark-submit")
    command = [str(submit), "--properties-file", "conf/spark-defaults.conf", "--version"]
    run = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=True
    )
    classes = loaded.read_text(encoding="utf-8")
    assert "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)" in classes
    other = ["java", f"-XX:SharedArchiveFile={jars_dir() / ARCHIVE}", *QUIET.split(), "-version"]
    unfit = subprocess.run([*other], capture_output=True, text=True, check=True)
    assert "cds" not in run.stdout + unfit.stdout + unfit.stderr
