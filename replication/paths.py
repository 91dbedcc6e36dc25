"""Where the files that are data lie: schemas/, conf/ and the jars.

In a checkout they stand beside the package `replication`; a wheel carries schemas/ and conf/ to the
environment's share/replication-analyzer/. The jars are never packaged: `make setup` copies them
into .jars/.
"""

import sysconfig
from pathlib import Path


class MissingDataError(RuntimeError):
    """The package's own data files are not where they belong; the message says where that is."""


def project_root() -> Path:
    """The folder that holds schemas/ and conf/.

    Raises MissingDataError where neither the checkout nor the installed data has a schemas/ folder.
    """
    checkout = Path(__file__).resolve().parent.parent
    installed = Path(sysconfig.get_path("data")) / "share" / "replication-analyzer"
    for root in (checkout, installed):
        if (root / "schemas").is_dir():
            return root
    raise MissingDataError(
        f"no schemas/ folder in {checkout} nor in {installed}: "
        "use a complete checkout, or install the wheel again"
    )


def jars_dir() -> Path:
    """The folder of the jars that Spark needs beside its own; it need not exist yet."""
    return project_root() / ".jars"


def spark_jars() -> list[Path]:
    """The jars for `spark.jars` (Delta Lake, the Kafka source and what they need), sorted by name.

    Raises MissingDataError where the set-up was not run or was interrupted.
    """
    folder = jars_dir()
    if not (folder / ".complete").is_file():
        raise MissingDataError(f"the Spark jars are not complete in {folder}: run `make setup`")
    return sorted(folder.glob("*.jar"))


def kafka_broker_jars(version: str) -> list[Path]:
    """The class path of a real broker of that Kafka version, sorted by name.

    Raises MissingDataError where its jars were not fetched.
    """
    folder = jars_dir() / f"kafka-{version}"
    if not (folder / ".complete").is_file():
        raise MissingDataError(
            f"the Kafka {version} jars are not complete in {folder}: "
            f"run `make .jars/kafka-{version}/.complete`"
        )
    return sorted(folder.glob("*.jar"))
