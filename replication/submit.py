"""The jobs as commands: spark-submit with the shipped settings, the jars, and the job's file.

    replication-stream [spark-submit's own options] [the job's options]

Options that spark-submit knows come first and go to it; they beat the shipped settings. Without
`--jars` or `--packages` the jars are those of the checkout or of REPLICATION_ANALYZER_JARS, else
Maven fetches them by name. `--help` of a job, and `replication-views --text`, need neither jars nor
Java.
"""

import importlib.util
import os
import pwd
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from replication.doctor import wanted_versions
from replication.java_options import QUICKLY
from replication.paths import (
    JARS,
    MissingDataError,
    how_to_install,
    is_checkout,
    jars_are_named,
    jars_dir,
    project_root,
    spark_jars,
)
from replication.progress import ERROR, line_of

EXIT_UNUSABLE = 2
# Of spark-submit, those with a value that say where and with what a job runs.
WITH_VALUE = (
    "--master", "--deploy-mode", "--name", "--conf", "-c", "--properties-file", "--jars",
    "--packages", "--exclude-packages", "--repositories", "--py-files", "--files", "--archives",
    "--driver-memory", "--driver-cores", "--driver-java-options", "--driver-class-path",
    "--driver-library-path", "--executor-memory", "--executor-cores", "--num-executors",
    "--total-executor-cores", "--queue", "--principal", "--keytab", "--proxy-user",
)  # fmt: skip
ALONE = ("--verbose", "--supervise")
# Jobs that end before the code pays which Java's second compiler makes: for the suites over a small
# dump it was 12 of 29 CPU seconds, and one thread that collects garbage took 3 less than several.
SHORT = ("check_quality", "create_views", "maintain", "report")


def command_of(job: str, arguments: Sequence[str], spark_submit: str) -> list[str]:
    """The spark-submit call for a job of jobs/, by its name without the ending.

    Raises MissingDataError where the package's data or a checkout's jars are not there.
    """
    own, rest = _split(arguments)
    root = project_root()
    if _needs_no_spark(job, own, rest) and importlib.util.find_spec("pyspark"):
        return [sys.executable, str(root / "jobs" / f"{job}.py"), *rest]
    command = [spark_submit]
    if not _given(own, "--properties-file"):
        command += ["--properties-file", str(root / "conf" / "spark-defaults.conf")]
        command += _conf(own, "spark.driver.extraJavaOptions", _java_options(root, job))
    if not (_given(own, "--jars") or _given(own, "--packages")):
        command += _jars(root)
    return [*command, *own, str(root / "jobs" / f"{job}.py"), *rest]


def _needs_no_spark(job: str, own: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether a job only prints what it knows by itself: its help, or the views' SQL as text."""
    names = {word.partition("=")[0] for word in rest}
    is_text = job == "create_views" and "--text" in names
    return is_text or (not own and bool({"-h", "--help"} & names))


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """spark-submit's own options, which come first, and the job's."""
    at = 0
    while at < len(arguments):
        name, equals, _ = arguments[at].partition("=")
        if name in WITH_VALUE:
            at += 1 if equals else 2
        elif name in ALONE:
            at += 1
        else:
            break
    return list(arguments[:at]), list(arguments[at:])


def _given(own: Sequence[str], name: str) -> bool:
    return any(word.partition("=")[0] == name for word in own)


def _conf(own: Sequence[str], key: str, value: str) -> list[str]:
    """A setting, where the user gave none of that name."""
    told = any(word.removeprefix("--conf=").startswith(f"{key}=") for word in own)
    return [] if told else ["--conf", f"{key}={value}"]


def _java_options(root: Path, job: str) -> str:
    """The shipped file names its paths from the checkout; these are whole ones."""
    log_settings = root / "conf" / "log4j2.properties"
    told = f"-Dlog4j2.configurationFile={log_settings} -Dspark.shutdown.timeout=150s"
    archive = jars_dir() / "spark.jsa"
    if archive.is_file():
        told += f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    return f"{told} {QUICKLY}" if job in SHORT else told


def _jars(root: Path) -> list[str]:
    if is_checkout() or jars_are_named():
        return ["--conf", f"spark.jars={','.join(str(jar) for jar in spark_jars())}"]
    pom = root / "conf" / "jars" / "pom.xml"
    versions = wanted_versions(pom)
    minor = ".".join(versions.spark.split(".")[:2])
    names = (
        f"io.delta:delta-spark_{minor}_2.13:{versions.delta}",
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{versions.spark}",
    )
    # The shipped settings name the jars of a checkout, which are not here.
    named = ["--conf", "spark.jars=", "--packages", ",".join(names)]
    return [*named, "--exclude-packages", ",".join(f"*:{n}" for n in _shipped_by_spark(pom))]


def _shipped_by_spark(pom: Path) -> list[str]:
    """The artifacts that the pom leaves out. Spark has them; and Maven, told not to fetch them, has
    left their descriptions alone in its repository, where Spark's Ivy finds no jar and gives up."""
    found = ElementTree.parse(pom).findtext(".//{*}excludeArtifactIds") or ""
    return [name.strip() for name in found.split(",")]


def _spark_submit() -> str | None:
    """The one of SPARK_HOME, else that of this Python's pyspark, else in PATH."""
    home, pyspark = os.environ.get("SPARK_HOME"), importlib.util.find_spec("pyspark")
    folders = [Path(home)] if home else []
    if pyspark is not None and pyspark.origin is not None:
        folders.append(Path(pyspark.origin).parent)
    found = [p for p in (folder / "bin" / "spark-submit" for folder in folders) if p.is_file()]
    return str(found[0]) if found else shutil.which("spark-submit")


def _user_has_a_name() -> bool:
    try:
        return bool(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return False


def _run(job: str) -> int:
    program = Path(sys.argv[0]).name
    spark_submit = _spark_submit()
    if spark_submit is None:
        told = f"{how_to_install('spark,quality')}, or set SPARK_HOME"
        print(line_of(f"{program}: there is no spark-submit: {told}", ERROR), file=sys.stderr)
        return EXIT_UNUSABLE
    try:
        command = command_of(job, sys.argv[1:], spark_submit)
    except MissingDataError as error:
        print(line_of(f"{program}: {error}", ERROR), file=sys.stderr)
        return EXIT_UNUSABLE
    if command[0] == spark_submit and not _user_has_a_name():
        told = (
            f"user id {os.getuid()} has no name in /etc/passwd, without which Spark ends: "
            "run this as a user that has one (the images: 1000), or add a line for this id to it"
        )
        print(line_of(f"{program}: {told}", ERROR), file=sys.stderr)
        return EXIT_UNUSABLE
    # The job's Python is this one, wherever `python3` in PATH leads.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    sys.stdout.flush()
    if "--packages" in command:
        pom = project_root() / "conf" / "jars" / "pom.xml"
        told = (
            f"{program}: Spark fetches Delta Lake and the Kafka source from a Maven repository. "
            f"Where that fails: mvn -f {pom} dependency:copy-dependencies -DincludeScope=runtime "
            f"-DoutputDirectory=/FOLDER && touch /FOLDER/.complete, then set {JARS}=/FOLDER"
        )
        print(line_of(told), file=sys.stderr, flush=True)
    os.execv(command[0], command)


# What the commands of a wheel call.
stream, replay, import_artifacts, check_quality, report, maintain, create_views = (
    partial(_run, job)
    for job in (
        "stream", "replay", "import_artifacts", "check_quality", "report", "maintain",
        "create_views",
    )
)  # fmt: skip
