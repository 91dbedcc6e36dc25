"""The doctor names each thing that is missing or wrong, says how to get it, and passes here."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from replication import doctor
from replication.paths import MissingDataError, project_root, spark_jars
from tests.conftest import without_progress

WANTED = doctor.Versions(spark="4.2.0", delta="4.4.0")
WHOLE_SET = (
    "delta-spark_4.2_2.13-4.4.0",
    "delta-storage-4.4.0",
    "delta-kernel-api-4.4.0",
    "delta-kernel-defaults-4.4.0",
    "spark-sql-kafka-0-10_2.13-4.2.0",
    "spark-token-provider-kafka-0-10_2.13-4.0.0",
    "kafka-clients-3.9.2",
    "commons-pool2-2.13.1",
)


def java_says(version: str) -> str:
    return (
        f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime Environment (build {version})\n'
    )


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A complete folder of jars, to be broken."""
    for name in WHOLE_SET:
        with zipfile.ZipFile(tmp_path / f"{name}.jar", "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    (tmp_path / ".complete").touch()
    return tmp_path


@pytest.mark.parametrize("version", ["17.0.11", "17.0.15", "21.0.4", "25.0.3"])
def test_java_that_spark_runs_on(version: str) -> None:
    assert doctor.check_java(java_says(version)) == doctor.Check("Java", True, version)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "no java in JAVA_HOME or PATH"),
        (java_says("1.8.0_392"), "1.8.0_392, which Spark 4.2 is not made for"),
        (java_says("11.0.2"), "11.0.2, which Spark 4.2 is not made for"),
        (java_says("17.0.2"), "17.0.2, older than 17.0.11"),
        (java_says("17"), "17, older than 17.0.11"),
        (java_says("25.0.1"), "25.0.1, older than 25.0.3"),
        ("Unrecognized option: -version", "not understood: 'Unrecognized option: -version'"),
    ],
)
def test_java_that_spark_does_not_run_on(text: str | None, found: str) -> None:
    check = doctor.check_java(text)
    assert (check.ok, check.found) == (False, found)
    assert "install a Java runtime 17" in check.remedy


def test_maven_is_missing_only_while_jars_are() -> None:
    assert not doctor.check_maven(None, jars_are_here=False).ok
    assert doctor.check_maven(None, jars_are_here=True).ok
    assert doctor.check_maven("\x1b[1mApache Maven 3.8.7\x1b[m\nhome", False).found == (
        "Apache Maven 3.8.7"
    )


@pytest.mark.parametrize(
    "installed",
    [
        {"pyspark": "4.2.1", "delta-spark": "4.4.0"},
        {"pyspark": "4.2.0", "delta-spark": "4.4.1"},
        {"pyspark": None, "delta-spark": "4.4.0"},
        {},
    ],
)
def test_spark_and_delta_must_be_the_exact_pair(installed: dict[str, str | None]) -> None:
    check = doctor.check_pair(installed, WANTED)
    assert not check.ok
    assert "they must be pyspark 4.2.0 and delta-spark 4.4.0" in check.remedy


@pytest.mark.parametrize(
    ("version", "ok"),
    [("2.1.4", False), ("2.2.0", True), ("2.3.3", True), ("3.0.0", False), (None, False)],
)
def test_package_bounds(version: str | None, ok: bool) -> None:
    check = doctor.check_package("pandas", version, "2.2", "3", "because")
    assert check.ok == ok
    assert ok or ("because" in check.remedy and "pandas>=2.2,<3" in check.remedy)


def test_jars_complete(jars: Path) -> None:
    check = doctor.check_jars(jars, WANTED)
    assert check == doctor.Check("jars", True, f"8 in {jars}")


@pytest.mark.parametrize("name", WHOLE_SET)
def test_jars_one_missing(jars: Path, name: str) -> None:
    (jars / f"{name}.jar").unlink()
    check = doctor.check_jars(jars, WANTED)
    assert (check.ok, check.found) == (False, f"{name.rpartition('-')[0]} is missing")


def test_jars_of_another_version_than_the_packages(jars: Path) -> None:
    check = doctor.check_jars(jars, doctor.Versions(spark="4.2.1", delta="4.4.1"))
    assert not check.ok
    assert "delta-storage is 4.4.0, the Python packages are for 4.4.1" in check.found
    assert "spark-sql-kafka-0-10_2.13 is 4.2.0, the Python packages are for 4.2.1" in check.found


def test_jars_torn_doubled_or_interrupted(jars: Path) -> None:
    torn = jars / "commons-pool2-2.13.1.jar"
    torn.write_bytes(torn.read_bytes()[:40])
    (jars / "kafka-clients-3.9.2.jar").rename(jars / "kafka-clients-3.9.1.jar")
    (jars / "kafka-clients-3.4.0.jar").write_bytes((jars / "delta-storage-4.4.0.jar").read_bytes())
    found = doctor.check_jars(jars, WANTED).found
    assert found == ("commons-pool2-2.13.1.jar is not a whole jar; kafka-clients in 2 versions")


def test_jars_of_a_set_up_that_did_not_finish(jars: Path) -> None:
    (jars / ".complete").unlink()
    assert doctor.check_jars(jars, WANTED).found == "the set-up did not finish"
    assert not doctor.check_jars(jars / "nowhere", WANTED).ok


def test_another_spark_home_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "pyspark"
    assert doctor.check_spark_home(None, mine).ok
    assert doctor.check_spark_home(str(mine), mine).ok
    other = doctor.check_spark_home(str(tmp_path / "spark-3.5"), mine)
    assert (other.ok, other.remedy) == (False, "unset SPARK_HOME")
    assert not doctor.check_spark_home(None, None).ok


def test_settings_that_lack_the_state_store(tmp_path: Path) -> None:
    shipped = project_root() / "conf" / "spark-defaults.conf"
    assert doctor.check_settings(shipped).ok
    changed = tmp_path / "spark-defaults.conf"
    changed.write_text(shipped.read_text().replace("RocksDBStateStoreProvider", "HDFSBacked"))
    check = doctor.check_settings(changed)
    assert not check.ok
    assert "spark.sql.streaming.stateStore.providerClass" in check.found
    assert not doctor.check_settings(tmp_path / "nowhere.conf").ok


@pytest.mark.slow
def test_silent_exit_of_great_expectations_is_seen() -> None:
    """The trap itself, sprung in a child process; hence imports inside functions in quality/."""
    version = doctor.installed_version("great-expectations")
    trapped = doctor.check_silent_exit(
        version, lambda _: doctor.import_fault("import great_expectations")
    )
    assert not trapped.ok
    assert "in silence, with exit status 0" in trapped.found
    assert not doctor.check_silent_exit(None, doctor.import_fault).ok


def test_import_fault_tells_errors_from_silence() -> None:
    assert doctor.import_fault("import json") is None
    assert doctor.import_fault("import nowhere_to_be_found") == (
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    )


def test_wanted_versions_come_from_the_pom(tmp_path: Path) -> None:
    assert doctor.wanted_versions(project_root() / "conf" / "jars" / "pom.xml") == WANTED
    with pytest.raises(MissingDataError, match="cannot be read"):
        doctor.wanted_versions(tmp_path / "pom.xml")
    (tmp_path / "pom.xml").write_text("<project/>")
    with pytest.raises(MissingDataError, match=r"does not name spark\.version"):
        doctor.wanted_versions(tmp_path / "pom.xml")


def test_python_and_virtual_environment(tmp_path: Path) -> None:
    assert not doctor.check_python((3, 10, 14)).ok
    assert doctor.check_python((3, 11, 0)).ok
    assert doctor.check_environment(tmp_path, "/a", "/b").ok
    assert doctor.check_environment(tmp_path, "/a", "/a").remedy == doctor.SET_UP
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    assert "replication-analyzer" in doctor.check_environment(tmp_path, "/a", "/a").remedy


def test_a_missing_browser_is_said_and_is_no_fault() -> None:
    assert doctor.check_browser([]).found == "chromium and chromedriver are here"
    missing = doctor.check_browser(["chromium", "chromedriver"])
    assert missing.ok
    assert "no chromium and no chromedriver" in missing.found
    assert "make browser" in missing.found


@pytest.mark.spark
def test_no_jar_that_pyspark_ships_already() -> None:
    """Two versions of one class make errors that depend on the order of the class path."""
    folder = doctor.project_root() / ".venv"
    shipped = [jar.name for jar in folder.glob("lib/python*/site-packages/pyspark/jars/*.jar")]
    assert shipped
    doubled = [
        (jar.name, theirs)
        for jar in spark_jars()
        for theirs in shipped
        if theirs.startswith(f"{jar.name.rpartition('-')[0]}-")
        and theirs[len(jar.name.rpartition("-")[0]) + 1].isdigit()
    ]
    assert doubled == []


@pytest.mark.spark
def test_this_set_up_passes_and_one_without_java_does_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "replication", "doctor"]
    here = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (here.returncode, without_progress(here.stderr)) == (0, ""), here.stdout
    assert here.stdout.count("ok  ") == 13
    bare = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert bare.returncode == 2
    assert "MISSING  Java: no java in JAVA_HOME or PATH" in bare.stdout
    assert "1 of 13 missing" in bare.stdout
