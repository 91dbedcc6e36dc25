"""The command line of jobs/check_quality.py."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from replication import places
from replication.command_line import Parser
from replication.quality import metrics
from replication.quality.suites import DECIDED, NOTHING_ASSUMED

SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Every:
    """When the tables are judged again: after so many micro-batches of the fold, or seconds."""

    micro_batches: int = 0
    seconds: float = 0

    @classmethod
    def of(cls, text: str) -> "Every":
        """Raises argparse.ArgumentTypeError."""
        found = re.fullmatch(r"([1-9]\d*)([smh]?)", text)
        if found is None:
            told = "a time (90s, 15m, 2h) or a number of micro-batches of the fold"
            raise argparse.ArgumentTypeError(f"{text!r} is no {told}")
        number = int(found[1])
        return cls(seconds=number * SECONDS[found[2]]) if found[2] else cls(number)

    def __str__(self) -> str:
        if self.seconds:
            return f"every {self.seconds:g} s"
        return f"after every {self.micro_batches} more micro-batches of the fold"


def parser() -> argparse.ArgumentParser:
    """Flags of jobs/check_quality.py."""
    made = Parser(
        prog="check_quality.py",
        description="Holds the Delta tables against the expectations of conf/expectations/ and "
        "writes what came out into expectation_results.",
        epilog="Exit status: 0 no critical expectation failed, 1 one failed, 2 the tables or the "
        "expectations, or one of them, cannot be used, 4 a defect of this tool, 5 what it depends "
        "on failed and may come back.",
    )
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--suite", action="append", default=[], metavar="TABLE",
        help="only this table's suite; may be given several times; in files of --expectations "
        "that it leaves out, a misspelt table or column is told all the same",
    )  # fmt: skip
    made.add_argument(
        "--expectations", type=Path, metavar="DIR",
        help="a folder of suites of your own, which join those of conf/expectations; an "
        "expectation with the name of one of ours is refused",
    )  # fmt: skip
    made.add_argument(
        "--accepted", type=Path, metavar="FILE",
        help="findings that somebody has handled, each with until (a day), reason and who, as TOML "
        "([[accepted]]): until that day their rows fail nothing, and are told as accepted; read "
        "anew at each look",
    )  # fmt: skip
    _add_what_fails(made)
    made.add_argument(
        "--read-files", action="store_true",
        help="first read every byte of the tables' files: one that is damaged is named with the "
        "remedy, though no expectation reads it (status 2)",
    )  # fmt: skip
    made.add_argument("--run", metavar="NAME", help="name of this run; without it the time")
    made.add_argument(
        "--every", type=Every.of, metavar="N|TIME",
        help="stay, and judge again: 15m, 90s or 2h after the last look began; a bare N whenever "
        "the fold has written N more micro-batches. Tables that cannot be read at a later look are "
        "told, and it goes on. SIGTERM or Ctrl-C ends it: the last line on "
        "stderr says the worst status of all looks (1 outranks 2), and the job ends with it; where "
        "the signal is sent to spark-submit itself, that ends with 143 or 130",
    )  # fmt: skip
    made.add_argument(
        "--metrics", type=metrics.place, metavar="PORT|FILE",
        help="outcomes for Prometheus, for which conf/prometheus/alerts.yml has rules: served on "
        "that port while --every stays, or written after each look into a file, which ends .prom, "
        "for node_exporter's textfile collector: what a call with --suite does not ask, it goes on "
        "saying, and where a call ends with 2 or 5, replication_quality_look_failed is 1 in it",
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


def _add_what_fails(made: argparse.ArgumentParser) -> None:
    """The flags by which an owner makes an expectation critical."""
    made.add_argument(
        "--fail-on-unknown", action="append_const", const=DECIDED, dest="fail_on", default=[],
        help="a verdict on committed or acknowledged records that is UNKNOWN, or that a defect of "
        "this tool left open, makes the exit status 1, whichever suites are asked; without it such "
        "a verdict is printed and fails nothing critical",
    )  # fmt: skip
    made.add_argument(
        "--fail-on-assumed", action="append_const", const=NOTHING_ASSUMED, dest="fail_on",
        help="the same for a verdict HOLDS on such records that takes something for granted which "
        "the evidence does not show (its column assuming; `replication-analyzer explain NAME` says "
        "what would show it); with both flags, 0 means: shown by the evidence alone",
    )  # fmt: skip
