"""`replication-analyzer doctor`: is everything here that the Spark jobs need, and how to get it.

Standard library only, and nothing is imported that it asks about: it has to speak where half is
missing. The versions that belong together are read from conf/jars/pom.xml, so that nothing is said
twice.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from replication.paths import (
    MissingDataError,
    how_to_install,
    is_checkout,
    jars_are_named,
    jars_dir,
    project_root,
)

SET_UP = "run `make setup` in the checkout"
INSTALL = how_to_install("spark,quality")
# Without these Spark dies with a class that was not found; the rest of .jars/ is what they need in
# rarer paths.
NEEDED_JARS = (
    "delta-storage",
    "delta-kernel-api",
    "delta-kernel-defaults",
    "kafka-clients",
    "commons-pool2",
    "spark-token-provider-kafka-0-10_2.13",
)
# Spark 4.2 refuses older builds of 17 and early builds of 25; None: any build.
JAVA_FLOORS = {17: (17, 0, 11), 21: None, 25: (25, 0, 3)}
NEEDED_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
# What must stay alive after its import: Great Expectations at the top of a module would end it.
IMPORTS_OF_OURS = """
import importlib, pkgutil, replication.cli
if importlib.util.find_spec("replication.quality"):
    package = importlib.import_module("replication.quality")
    for module in pkgutil.iter_modules(package.__path__, "replication.quality."):
        importlib.import_module(module.name)
"""


@dataclass(frozen=True)
class Check:
    """One answer. found: what is there, in words; remedy: what to do, empty where ok."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Versions:
    """The versions that conf/jars/pom.xml says belong together: of pyspark, and of delta-spark."""

    spark: str
    delta: str


def wanted_versions(pom: Path) -> Versions:
    """What the pom's properties spark.version and delta.version say.

    Raises MissingDataError where the file is missing or does not name them.
    """
    try:
        tree = ElementTree.parse(pom)
    except (OSError, ElementTree.ParseError) as error:
        raise MissingDataError(f"{pom} cannot be read: {error}") from error
    found = {
        key: tree.findtext(f"{{*}}properties/{{*}}{key}")
        for key in ("spark.version", "delta.version")
    }
    spark, delta = found["spark.version"], found["delta.version"]
    if not spark or not delta:
        raise MissingDataError(f"{pom} does not name spark.version and delta.version")
    return Versions(spark, delta)


def installed_version(package: str) -> str | None:
    """The version of an installed Python package, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0]))


def check_python(version: tuple[int, ...]) -> Check:
    """Python 3.11 or later, as the package's metadata demands."""
    found = ".".join(str(part) for part in version[:3])
    if version >= (3, 11):
        return Check("Python", True, found)
    return Check("Python", False, found, "install Python 3.11 and run `make setup` again")


def check_environment(root: Path, prefix: str, base_prefix: str) -> Check:
    """A virtual environment runs this: .venv/ of the checkout, or one of the user's own."""
    name = "virtual environment"
    if prefix != base_prefix:
        return Check(name, True, prefix)
    if (root / ".venv" / "bin" / "python").exists():
        remedy = f"call {root / '.venv' / 'bin' / 'replication-analyzer'}"
        return Check(name, False, f"{prefix} is not one, but .venv is there", remedy)
    return Check(name, False, "none", SET_UP)


def check_java(version_text: str | None) -> Check:
    """Judges what `java -version` printed; None where there is no java to run."""
    remedy = (
        "install a Java runtime 17 (17.0.11 or later), 21 or 25; set JAVA_HOME if it is not in PATH"
    )
    if version_text is None:
        return Check("Java", False, "no java in JAVA_HOME or PATH", remedy)
    match = re.search(r'version "([^"]+)"', version_text)
    if match is None:
        return Check("Java", False, f"not understood: {version_text.strip()[:80]!r}", remedy)
    found = match.group(1)
    numbers = _numbers(found)
    if numbers[0] not in JAVA_FLOORS:
        return Check("Java", False, f"{found}, which Spark 4.2 is not made for", remedy)
    floor = JAVA_FLOORS[numbers[0]]
    if floor is not None and numbers < floor:
        wanted = ".".join(str(part) for part in floor)
        return Check("Java", False, f"{found}, older than {wanted}", remedy)
    return Check("Java", True, found)


def check_maven(version_text: str | None, jars_are_here: bool) -> Check:
    """Maven is needed only to fetch jars: once they are here its absence is no fault."""
    if version_text is not None:
        lines = re.sub(r"\x1b\[[0-9;]*m", "", version_text).splitlines()
        return Check("Maven", True, lines[0] if lines else "there")
    if jars_are_here:
        return Check("Maven", True, "not found, and not needed: the jars are here")
    return Check("Maven", False, "no mvn in PATH", f"install Maven 3.6 or later, then {SET_UP}")


def check_pair(installed: Mapping[str, str | None], wanted: Versions) -> Check:
    """pyspark and delta-spark, exactly the two that were made for each other."""
    pair = {"pyspark": wanted.spark, "delta-spark": wanted.delta}
    found = ", ".join(f"{name} {installed.get(name) or 'not installed'}" for name in pair)
    if all(installed.get(name) == version for name, version in pair.items()):
        return Check("Spark and Delta packages", True, found)
    both = " and ".join(f"{name} {version}" for name, version in pair.items())
    return Check("Spark and Delta packages", False, found, f"they must be {both}: {SET_UP}")


def check_package(
    name: str, version: str | None, lowest: str, below: str | None, why: str
) -> Check:
    """One Python package with lowest <= version < below; why: what goes wrong otherwise."""
    bounds = f">={lowest}" + (f",<{below}" if below else "")
    remedy = f"{why}; {SET_UP}, or `pip install '{name}{bounds}'`"
    if version is None:
        return Check(name, False, "not installed", remedy)
    numbers = _numbers(version)
    if numbers < _numbers(lowest) or (below is not None and numbers >= _numbers(below)):
        return Check(name, False, f"{version}, wanted {bounds}", remedy)
    return Check(name, True, version)


def _jar_faults(folder: Path, wanted: Versions) -> list[str]:
    versions: dict[str, list[str]] = {}
    faults = []
    for jar in sorted(folder.glob("*.jar")):
        if not zipfile.is_zipfile(jar):
            faults.append(f"{jar.name} is not a whole jar")
        match = re.fullmatch(r"(.+)-(\d[^-]*)\.jar", jar.name)
        artifact, version = match.groups() if match else (jar.stem, "")
        versions.setdefault(artifact, []).append(version)
    faults += [
        f"{name} in {len(all_)} versions" for name, all_ in versions.items() if len(all_) > 1
    ]
    spark_minor = ".".join(wanted.spark.split(".")[:2])
    exact = {
        f"delta-spark_{spark_minor}_2.13": wanted.delta,
        "delta-storage": wanted.delta,
        "spark-sql-kafka-0-10_2.13": wanted.spark,
    }
    for artifact, version in exact.items():
        found = versions.get(artifact)
        if found and version not in found:
            faults.append(f"{artifact} is {found[0]}, the Python packages are for {version}")
    missing = [name for name in dict.fromkeys((*exact, *NEEDED_JARS)) if name not in versions]
    return faults + [f"{name} is missing" for name in missing]


def check_jars(folder: Path, wanted: Versions) -> Check:
    """The jars beside Spark's own: there, whole, one version each, that of the Python packages."""
    remedy = f"{SET_UP}; if it finds nothing to do, remove {folder} first"
    if not folder.is_dir():
        return Check("jars", False, f"no folder {folder}", SET_UP)
    faults = _jar_faults(folder, wanted)
    if not faults and not (folder / ".complete").is_file():
        faults.append("the set-up did not finish")
    if faults:
        return Check("jars", False, "; ".join(faults), remedy)
    return Check("jars", True, f"{len(list(folder.glob('*.jar')))} in {folder}")


def check_spark_home(spark_home: str | None, pyspark_folder: Path | None) -> Check:
    """A SPARK_HOME of another installation makes spark-submit start another Spark than ours."""
    name = "spark-submit"
    if pyspark_folder is None:
        return Check(name, False, "pyspark is not installed", SET_UP)
    if spark_home and Path(spark_home).resolve() != pyspark_folder.resolve():
        return Check(name, False, f"SPARK_HOME is {spark_home}", "unset SPARK_HOME")
    scripts = Path(sys.prefix) / "bin"
    if shutil.which("spark-submit") == str(scripts / "spark-submit"):
        return Check(name, True, f"{scripts / 'spark-submit'}")
    return Check(name, True, f'before calling it: export PATH="{scripts}:$PATH"')


def check_settings(path: Path) -> Check:
    """The settings without which Delta tables or the state store do not work are in the file."""
    name = "Spark settings"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", "restore it from the repository")
    words = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    settings = {pair[0]: pair[1].strip() for pair in words if len(pair) == 2}
    wrong = [key for key, value in NEEDED_SETTINGS.items() if settings.get(key) != value]
    if wrong:
        remedy = "; ".join(f"set {key} to {NEEDED_SETTINGS[key]}" for key in wrong)
        return Check(name, False, f"{path} lacks or changes {', '.join(wrong)}", remedy)
    return Check(name, True, str(path))


def import_fault(code: str) -> str | None:
    """What is wrong where a fresh Python runs `code`, in words; None where it reaches the end.

    Spark Connect, which Great Expectations imports, takes an interpreter started with -c, or one
    whose __main__ has not been loaded yet, for a test run without grpc, and calls sys.exit(0).
    """
    child = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint('reached the end')"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if child.returncode != 0:
        return (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
    if "reached the end" not in child.stdout:
        return "it ends the process in silence, with exit status 0"
    return None


def check_silent_exit(version: str | None, probe: Callable[[str], str | None]) -> Check:
    """Great Expectations is there, and importing our own modules does not end the process."""
    name = "Great Expectations"
    if version is None:
        return Check(name, False, "not installed", SET_UP)
    fault = probe(IMPORTS_OF_OURS)
    if fault is not None:
        remedy = "import great_expectations inside functions only, or `pip install grpcio`"
        return Check(name, False, f"{version}; importing our modules: {fault}", remedy)
    return Check(name, True, f"{version}, and importing our modules does not end the process")


def check_browser(absent: Sequence[str]) -> Check:
    """What drives the incident page in the tests: no job needs it, its absence is no fault."""
    name = "Chromium, for the tests"
    if not absent:
        return Check(name, True, "chromium and chromedriver are here")
    found = f"no {' and no '.join(absent)}; only `make test` needs it: `make browser` installs it"
    return Check(name, True, found)


def _run(command: Sequence[str]) -> str | None:
    """What the command prints on both streams; None where it cannot be started or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _java_version_text() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return _run([str(Path(home) / "bin" / "java") if home else "java", "-version"])


def _pyspark_folder() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def _check_packages(installed: Mapping[str, str | None]) -> list[Check]:
    return [
        check_package(
            "pandas", installed["pandas"], "2.2", "3", "Spark 4.2 does not support pandas 3"
        ),
        check_package(
            "pyarrow", installed["pyarrow"], "18", None, "Spark hands rows to Python through it"
        ),
        check_package(
            "protobuf",
            installed["protobuf"],
            "6.33.5",
            "8",
            "stateful queries in Python crash without it, and no package asks for it",
        ),
    ]


def check() -> list[Check]:
    """All checks, in the order in which to mend things. Starts java, mvn and a Python in passing.

    Raises MissingDataError where the checkout itself is not complete.
    """
    root = project_root()
    wanted = wanted_versions(root / "conf" / "jars" / "pom.xml")
    packages = ("pyspark", "delta-spark", "pandas", "pyarrow", "protobuf", "great-expectations")
    installed = {name: installed_version(name) for name in packages}
    jars = check_jars(root / ".jars", wanted)
    if not is_checkout():
        return _of_an_installation(root, wanted, installed)
    return [
        check_python(tuple(sys.version_info[:3])),
        check_environment(root, sys.prefix, sys.base_prefix),
        check_java(_java_version_text()),
        check_maven(_run(["mvn", "--version"]), jars.ok),
        check_pair(installed, wanted),
        *_check_packages(installed),
        jars,
        check_spark_home(os.environ.get("SPARK_HOME"), _pyspark_folder()),
        check_settings(root / "conf" / "spark-defaults.conf"),
        check_silent_exit(installed["great-expectations"], import_fault),
        check_browser([n for n in ("chromium", "chromedriver") if shutil.which(n) is None]),
    ]


def _of_an_installation(
    root: Path, wanted: Versions, installed: Mapping[str, str | None]
) -> list[Check]:
    """The same without a checkout: Spark fetches the jars, and pip installs the rest."""
    fetched = "fetched by replication-stream and its like, where none are given (not tried now)"
    named = check_jars(jars_dir(), wanted) if jars_are_named() else None
    jars = named or Check("jars", True, fetched)
    checks = [
        check_python(tuple(sys.version_info[:3])),
        check_java(_java_version_text()),
        check_pair(installed, wanted),
        *_check_packages(installed),
        jars,
        check_spark_home(os.environ.get("SPARK_HOME"), _pyspark_folder()),
        check_settings(root / "conf" / "spark-defaults.conf"),
        check_silent_exit(installed["great-expectations"], import_fault),
    ]
    return [replace(one, remedy=one.remedy.replace(SET_UP, INSTALL)) for one in checks]


def main() -> int:
    """Prints every check and what to do about those that fail. 0: all is here, 2: not all."""
    try:
        checks = check()
    except MissingDataError as error:
        print(f"replication-analyzer doctor: {error}", file=sys.stderr)
        return 2
    for one in checks:
        print(f"{'ok' if one.ok else 'MISSING':<8} {one.name}: {one.found}")
        if not one.ok:
            print(f"{'':<8} -> {one.remedy}")
    missing = sum(not one.ok for one in checks)
    if missing:
        print(f"\n{missing} of {len(checks)} missing; the jobs need them, `diagnose` does not.")
        return 2
    print("\nEverything that the Spark jobs need is here.")
    return 0
