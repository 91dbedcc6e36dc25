"""The command line of jobs/check_quality.py."""

import argparse
from pathlib import Path

from replication import places


def parser() -> argparse.ArgumentParser:
    """Flags of jobs/check_quality.py."""
    made = argparse.ArgumentParser(
        prog="check_quality.py",
        description="Holds the Delta tables against the expectations of conf/expectations/ and "
        "writes what came out into expectation_results.",
        epilog="Exit status: 0 no critical expectation failed, 1 one failed, 2 the tables or the "
        "expectations cannot be used, 4 a defect of this tool, 5 what it depends on failed and may "
        "come back.",
    )
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--suite", action="append", default=[], metavar="TABLE",
        help="only this table's suite; may be given several times",
    )  # fmt: skip
    made.add_argument(
        "--expectations", type=Path, metavar="DIR",
        help="a folder of suites of your own, which join those of conf/expectations; an "
        "expectation with the name of one of ours takes its place",
    )  # fmt: skip
    made.add_argument("--run", metavar="NAME", help="name of this run; without it the time")
    made.add_argument(
        "--every", type=_positive, metavar="N",
        help="stay, and judge again whenever the fold has written N more micro-batches, until "
        "SIGTERM or Ctrl-C; the exit status is the worst of all looks",
    )  # fmt: skip
    made.add_argument(
        "--data-docs", type=Path, metavar="DIR",
        help="write Great Expectations' Data Docs there; they need no network",
    )  # fmt: skip
    made.add_argument(
        "--project", type=Path, metavar="DIR",
        help="judge within a project of Great Expectations in this folder, made where it is not: "
        "it keeps every result, offers the tables as data source replication_tables, and what its "
        "owners add (suites, checkpoints with actions) stays and is run beside ours",
    )  # fmt: skip
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
