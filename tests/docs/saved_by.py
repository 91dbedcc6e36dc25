"""Makes docs/saved_by.md: which change of Kafka, or of settings, saves which scenario.

Each scenario of tests/scenarios is told once more by the machine under every release and setting of
the table. `python -m tests.docs.saved_by --write` writes the page.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from replication.machine.scenario import Story
from replication.machine.scenario_check import check
from replication.machine.scenario_text import Command, Stanza, Word, parse

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "saved_by.md"
SCENARIOS = ROOT / "tests" / "scenarios"
MARK, END = "<!-- made by `python -m tests.docs.saved_by --write` -->\n", "<!-- end -->"
LOST, DIFFER, KEPT, NOT_TOLD = "lost", "differ", "kept", "-"
AGAIN = ("rewind", "replay")
ASKED = ("check", "controller", "caches", "mark")


@dataclass(frozen=True)
class Column:
    """One way to tell a scenario again. settings: what `given` says instead; clean: without the
    elections of replicas outside the ISR that somebody forces."""

    name: str
    settings: tuple[tuple[str, str], ...]
    clean: bool = False


COLUMNS = (
    Column("0.10.2", (("kafka", "0.10.2.2"), ("controller", "zookeeper"))),
    Column("1.1 (KIP-101)", (("kafka", "1.1.1"), ("controller", "zookeeper"))),
    Column("2.0.1 (KIP-279)", (("kafka", "2.0.1"), ("controller", "zookeeper"))),
    Column("2.1 (KIP-320)", (("kafka", "2.1.0"), ("controller", "zookeeper"))),
    Column("2.8.1 (on fetch)", (("kafka", "2.8.1"), ("controller", "zookeeper"))),
    Column("3.9 (KRaft)", (("kafka", "3.9.1"), ("controller", "kraft"))),
    Column("4.1 (KIP-966, ELR)", (("kafka", "4.1.0"), ("controller", "kraft"))),
    Column("as told, no unclean election", (("unclean", "no"),), clean=True),
    Column("as told, min ISR 2", (("min_insync_replicas", "2"),)),
)
ROWS = {
    "s01_kip_101_loss": "KIP-101, scenario 1: a follower cuts to its high watermark, then leads",
    "s02_kip_101_divergence": "KIP-101, scenario 2: both lose power, the shorter log starts first",
    "s03_kip_279_fast_failover_15": "KIP-279: two quick elections, of which one replica hears late",
    "s03b_repeated_unclean_elections": "KIP-279: logs that parted more than once",
    "s04_kip_320_zombie": "KIP-320: a replica stalls in an old epoch, and fetches on",
    "s05_missed_epoch": "KAFKA-7164: a follower misses an epoch of another leader",
    "s08_epoch_not_cached": "KAFKA-7415: a leader without records of its epoch is asked for it",
    "s09_unclean_election": "an unclean election takes the first replica alive",
    "s10_last_replica_standing": "KIP-966: the last of the ISR loses its disk's tail",
    "s12_min_insync_one": "min.insync.replicas=1: the one copy is lost",
    "s15_diverging_fetch_counts": "KAFKA-13141: a diverging fetch counts as progress",
    "jira_1647_high_watermark_lost": "KAFKA-1647: the checkpoint of high watermarks is lost",
}


def commands_of(name: str) -> list[Command]:
    """The scenario's first telling: its commands up to the first that tells it again."""
    text = (SCENARIOS / f"{name}.txt").read_text(encoding="utf-8")
    found: list[Command] = []
    for part in parse(text):
        for command in part.commands if isinstance(part, Stanza) else ():
            if command.name in AGAIN or (command.name == "given" and found):
                return found
            if command.name not in ASKED:
                found.append(command)
    return found


def outcome(name: str, column: Column | None) -> str:
    """What becomes of the scenario; column None: as it is told."""
    given, *commands = commands_of(name)
    changed = dict(column.settings) if column else {}
    if "kafka" in changed:
        for gone in ("inter_broker", "elr", "versions", "with"):
            given.settings.pop(gone, None)
    for key, value in changed.items():
        given.settings[key] = Word(value, 1)
    story = Story(given, None, None)
    for command in commands:
        if column and column.clean and _is_unclean(story, command):
            continue
        story.tell(command)
    told = check(story.world, "all")
    lost = any(
        line in (f"{n}_records_survive VIOLATED" for n in ("committed", "acknowledged"))
        for line in told
    )
    differ = "log_matching VIOLATED" in told
    return ", ".join(w for w, is_so in ((LOST, lost), (DIFFER, differ)) if is_so) or KEPT


def _is_unclean(story: Story, command: Command) -> bool:
    if command.name != "elect":
        return False
    if not command.arguments:
        return command.text("cause") == "unclean"
    return story.replica(command.arguments[0], command) not in story.world.controller.isr


def table() -> str:
    """The table, a row for each scenario."""
    names = ["scenario", "as told", *(c.name for c in COLUMNS)]
    rows = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for name, words in ROWS.items():
        cells = [outcome(name, column) for column in (None, *COLUMNS)]
        release = commands_of(name)[0].settings["kafka"].text
        rows.append(f"| {words} | {release}: {cells[0]} | {' | '.join(cells[1:])} |")
    return "\n".join(rows) + "\n"


def with_table(text: str) -> str:
    """The page with the table as the machine tells it now."""
    before, rest = text.split(MARK)
    return f"{before}{MARK}\n{table()}\n{END}{rest.split(END, 1)[1]}"


def main() -> int:
    """Prints the table, or writes the page."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
