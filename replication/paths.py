"""Where the files that are data lie: schemas/, conf/, jobs/ and the jars.

In a checkout they are beside the package `replication`; a wheel carries them within it, in
`shipped/`. Where the package is read from a zip (`--py-files`), they are written out for the life
of the process. The jars are never packaged: `make setup` copies them into .jars/ of a checkout.
"""

import os
import tempfile
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

JARS = "REPLICATION_ANALYZER_JARS"
# The folder written out must live as long as the process.
_WRITTEN_OUT: list[tempfile.TemporaryDirectory[str]] = []


class MissingDataError(RuntimeError):
    """The package's own data files are not where they belong; the message says where that is."""


@cache
def project_root() -> Path:
    """The folder that holds schemas/, conf/ and jobs/.

    Raises MissingDataError where neither the checkout nor the installed package has them.
    """
    package = resources.files("replication")
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "schemas").is_dir():
        return checkout
    shipped = package / "shipped"
    if isinstance(shipped, Path) and shipped.is_dir():
        return shipped
    if shipped.is_dir():
        folder = tempfile.TemporaryDirectory(prefix="replication-analyzer-")
        _WRITTEN_OUT.append(folder)
        _write_out(shipped, Path(folder.name))
        return Path(folder.name)
    raise MissingDataError(
        f"no schemas/ folder in {checkout} nor in {shipped}: "
        "use a complete checkout, or install the wheel again"
    )


def _write_out(source: Traversable, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for item in source.iterdir():
        if item.is_dir():
            _write_out(item, target / item.name)
        else:
            (target / item.name).write_bytes(item.read_bytes())


def how_to_install(extras: str) -> str:
    """The wheel is in no registry: who asks one for its name gets what somebody else put there."""
    return (
        f'pip install "$(ls dist/*.whl)[{extras}]" in the checkout, after '
        "`pip wheel --no-deps -w dist .` there"
    )


def is_checkout() -> bool:
    """Whether this runs from a checkout, where `make` can set things up."""
    return (project_root() / "Makefile").is_file()


def jars_are_named() -> bool:
    """Whether the environment says where the jars are, as in an image that has them."""
    return bool(os.environ.get(JARS))


def jars_dir() -> Path:
    """The folder of the jars that Spark needs beside its own; it need not exist yet."""
    return Path(os.environ[JARS]) if jars_are_named() else project_root() / ".jars"


def spark_jars() -> list[Path]:
    """The jars for `spark.jars` (Delta Lake, the Kafka source and what they need), sorted by name.

    Raises MissingDataError where the set-up was not run or was interrupted.
    """
    folder = jars_dir()
    if jars_are_named() and not (folder / ".complete").is_file():
        raise MissingDataError(
            f"{JARS} names {folder}, which has no file .complete: copy the jars of "
            "conf/jars/pom.xml there and make that file last, or take the variable back"
        )
    if not (folder / ".complete").is_file():
        raise MissingDataError(f"the Spark jars are not complete in {folder}: run `make setup`")
    return sorted(folder.glob("*.jar"))


def kafka_broker_jars(version: str) -> list[Path]:
    """The class path of a real broker of that Kafka version, sorted by name.

    Raises MissingDataError where its jars were not fetched.
    """
    return _copied_jars("kafka", version)


def zookeeper_jars(version: str) -> list[Path]:
    """The class path of a ZooKeeper server of that version, sorted by name.

    Raises MissingDataError where its jars were not fetched.
    """
    return _copied_jars("zookeeper", version)


def _copied_jars(name: str, version: str) -> list[Path]:
    folder = jars_dir() / f"{name}-{version}"
    if not (folder / ".complete").is_file():
        raise MissingDataError(
            f"the {name} {version} jars are not complete in {folder}: "
            f"run `make .jars/{name}-{version}/.complete`"
        )
    return sorted(folder.glob("*.jar"))
