"""The wheel in an environment of its own, called from another folder: the tool and its jobs run.

The environment sees the packages of this one (no registry is asked), but not this checkout.
tests/wheel_jobs.py has an empty one, and every job.
"""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from replication import submit
from replication.collect.command import PLATFORMS
from replication.paths import MissingDataError, project_root, spark_jars
from tests.conftest import without_progress
from tests.wheel_jobs import built

ROOT = project_root()
INCIDENT = ROOT / "tests" / "incidents" / "unclean_election__4.1.1"
JOBS = {
    "stream": "stream", "replay": "replay", "import": "import_artifacts",
    "quality": "check_quality", "report": "report", "maintain": "maintain",
    "views": "create_views",
}  # fmt: skip
# conf/kafka/, conf/hdfs/ and conf/s3/ have what tests start.
FOLDERS = [
    folder
    for top in ("schemas", "conf", "jobs")
    for folder in (top, *(str(p.relative_to(ROOT)) for p in (ROOT / top).iterdir() if p.is_dir()))
    if not folder.endswith(("conf/kafka", "conf/hdfs", "conf/s3", "conf/containers", "__pycache__"))
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the wheel alone; it sees the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python",
               str(folder / "bin" / "python"), "install", "--no-deps", "--quiet",
               str(wheel)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Behind its own: a path file of this environment's would lead to this checkout again.
    (site / "neighbours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def call(environment: Path, folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    program, *rest = map(str, command)
    cleaned = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")}
    return subprocess.run(
        [str(environment / "bin" / program), *rest], cwd=folder, env=cleaned,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_wheel_holds_the_jobs_and_every_file_that_is_read(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
        metadata = held.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    wanted = {f"replication/shipped/{p.relative_to(ROOT)}" for folder in FOLDERS
              for p in (ROOT / folder).iterdir() if p.is_file()}  # fmt: skip
    wanted |= {f"replication/shipped/docs/{p.name}" for p in (ROOT / "docs").glob("*.json")}
    wanted |= {f"replication/collect/scripts/{platform}.sh" for platform in PLATFORMS}
    assert wanted - names == set()
    assert not [n for n in names if n.endswith(".md")]
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "replication").rglob("*.py")}
    assert modules - names == set()
    assert not [n for n in names if n.startswith(("tests/", "jobs/", "conf/", "benchmarks/"))]
    assert "License-Expression: Apache-2.0" in metadata
    assert "Did this Kafka cluster lose records" in metadata
    assert any(n.endswith("licenses/LICENSE") for n in names)


@pytest.mark.slow
def test_the_tool_answers_from_another_folder(environment: Path, tmp_path: Path) -> None:
    where = call(
        environment, tmp_path, "python", "-c",
        "import replication.paths as p; print(p.__file__); print(p.project_root())",
    )  # fmt: skip
    assert where.returncode == 0, where.stderr
    assert all(line.startswith(str(environment)) for line in where.stdout.splitlines())
    assert call(environment, tmp_path, "replication-analyzer", "--version").returncode == 0
    assert "complete -o" in call(environment, tmp_path, "replication-analyzer", "completion").stdout
    answer = call(environment, tmp_path, "replication-analyzer", "diagnose", INCIDENT)
    assert (answer.returncode, without_progress(answer.stderr)) == (1, "")
    assert "LOST" in answer.stdout
    told = call(environment, tmp_path, "replication-analyzer", "doctor").stdout
    assert "make setup" not in told
    assert "fetched by replication-stream" in told


@pytest.mark.slow
def test_a_zip_of_the_package_reads_its_own_files(wheel: Path, tmp_path: Path) -> None:
    archive = shutil.copy(wheel, tmp_path / "analyzer.zip")
    code = (
        "from replication.spark import contracts, settings, analyzer_version;"
        "print(len(contracts.tables()), settings.load({}).state_shards,"
        "analyzer_version.analyzer_version())"
    )
    outputs = []
    for path in (archive, str(ROOT)):
        cleaned = {**os.environ, "PYTHONPATH": str(path), "PYTHONSAFEPATH": "1"}
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=cleaned,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_each_job_has_a_command(job: str, environment: Path) -> None:
    script = (environment / "bin" / f"replication-{job}").read_text()
    assert f"import {JOBS[job]}" in script
    command = submit.command_of(JOBS[job], ["--master", "yarn", "-c", "a=b", "--tables", "t"], "s")
    assert command[-5:] == ["-c", "a=b", str(ROOT / "jobs" / f"{JOBS[job]}.py"), "--tables", "t"]
    assert (ROOT / "jobs" / f"{JOBS[job]}.py").is_file()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion", "spark"])
def test_the_sql_of_the_views_is_printed_without_java(engine: str, tmp_path: Path) -> None:
    for words in (["--text", engine], [f"--text={engine}"], ["--questions", "--text", engine]):
        command = submit.command_of("create_views", words, str(tmp_path / "spark-submit"))
        alone = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "SELECT" in done.stdout
    assert submit.command_of("create_views", ["--tables", "t"], "s")[0] == "s"


def test_what_is_given_to_spark_submit_beats_what_is_shipped() -> None:
    given = ["--properties-file", "mine", "--jars=a.jar", "--source", "x", "--conf", "no"]
    command = submit.command_of("replay", given, "s")
    job = str(ROOT / "jobs" / "replay.py")
    assert command == ["s", "--properties-file", "mine", "--jars=a.jar", job, *given[3:]]
    packaged = submit.command_of("replay", ["--packages", "a:b:1"], "s")
    assert packaged.count("--packages") == 1
    assert not [word for word in packaged if word.startswith("spark.jars")]


def test_an_image_names_its_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPLICATION_ANALYZER_JARS", str(tmp_path))
    with pytest.raises(MissingDataError, match="has no file"):
        submit.command_of("replay", [], "s")
    for name in ("b.jar", "a.jar", ".complete"):
        (tmp_path / name).touch()
    command = submit.command_of("replay", [], "s")
    assert f"spark.jars={tmp_path}/a.jar,{tmp_path}/b.jar" in command
    assert "--packages" not in command


def test_what_is_fetched_by_name_is_what_the_pom_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ivy gives up where Maven's repository has an artifact's pom without its jar, and the build of
    conf/jars/pom.xml leaves the poms of what it leaves out."""
    monkeypatch.delenv("REPLICATION_ANALYZER_JARS", raising=False)
    monkeypatch.setattr(submit, "is_checkout", lambda: False)
    command = submit.command_of("replay", [], "s")
    left_out = command[command.index("--exclude-packages") + 1].split(",")
    assert {"*:slf4j-api", "*:jsr305"} <= set(left_out)
    fetched = {jar.name.rpartition("-")[0] for jar in spark_jars()}
    wanted = command[command.index("--packages") + 1].split(",")
    assert {name.split(":")[1] for name in wanted} <= fetched
    assert not fetched & {name.removeprefix("*:") for name in left_out}
    mine = submit.command_of("replay", ["--packages", "a:b:1"], "s")
    assert "--exclude-packages" not in mine


def test_a_user_id_without_a_name_is_refused_before_spark_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["replication-replay", "--source", "a", "--tables", "b"])
    taken = {user.pw_uid for user in pwd.getpwall()}
    unnamed = next(number for number in range(4711, 60_000) if number not in taken)
    monkeypatch.setattr(os, "getuid", lambda: unnamed)
    assert submit.replay() == submit.EXIT_UNUSABLE
    said = capsys.readouterr().err
    assert said.startswith(f"replication-replay: user id {unnamed} has no name")
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_help_needs_neither_jars_nor_java(job: str, environment: Path, tmp_path: Path) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\necho java was started >&2\nexit 9\n")
    (tmp_path / "java").chmod(0o755)
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [str(environment / "bin" / f"replication-{job}"), "--help"], cwd=tmp_path, env=settings,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {JOBS[job]}.py")


@pytest.mark.spark
@pytest.mark.sweep
def test_a_job_runs_from_the_wheel_in_another_folder(environment: Path, tmp_path: Path) -> None:
    events = tmp_path / "events" / "one.jsonl"
    events.parent.mkdir()
    made = call(environment, tmp_path, "replication-analyzer", "import", INCIDENT, "--out", events)
    assert made.returncode == 0, made.stderr
    jars = ",".join(str(jar) for jar in spark_jars())
    done = call(environment, tmp_path, "replication-replay", "--jars", jars,
                "--source", "events", "--tables", "tables")  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "tables" / "verdicts" / "_delta_log").is_dir()
