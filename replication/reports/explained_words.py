"""`explain WORD`: what a word of the answer or of the tables means, as a page of text.

Causes and assumptions have pages of their own; of the other words of an answer VALUES has the
meaning, and of tables and columns schemas/ has it.
"""

import json
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from replication.paths import project_root
from replication.protocol.histories.assumptions import ASSUMPTIONS, Assumption
from replication.reports.inventory_words import counted
from replication.reports.vocabulary import CAUSE_WORDS, name, offsets

WIDTH = 100


@dataclass(frozen=True, slots=True)
class CausePage:
    """A cause of the loss ledger. meaning: the step without which the record survives, as
    docs/answers.md has it; prevented_by: releases and settings that exclude the step or what it
    costs; look_at: where a person finds the step in the evidence."""

    meaning: str
    prevented_by: str
    look_at: str


HOLDS_WHEN = (
    "every history that fits the evidence keeps it; where `assuming` of the verdict is not empty, "
    "every history that fits what is named there, too"
)
CAUSES = {
    "unclean_election": CausePage(
        "a replica that was not in sync was elected while a member of the ISR had the record",
        "unclean.leader.election.enable=false, the default from 0.11 on (KRaft obeys it from 3.9 "
        "on: before, only kafka-leader-election elects uncleanly). The price: the partition has "
        "no leader until a member of the ISR is back",
        "the controller's records of the election, and the first log end of the elected broker",
    ),
    "truncate_to_high_watermark": CausePage(
        "a replica truncated to its own high watermark and led (before KIP-101)",
        "Kafka 0.11 or later, with inter.broker.protocol.version 0.11.0-IV2 or later and message "
        "format 0.11: followers then truncate by leader epochs (KIP-101)",
        "the line `Truncating log .. to offset ..` of a follower, shortly before it was elected",
    ),
    "storage_loss": CausePage(
        "a broker came back with less on its disk than it had held",
        "eligible leader replicas (feature eligible.leader.replicas.version=1, from 4.0 on) with "
        "min.insync.replicas of 2 or more, for producers with acks=all: who comes back with less "
        "is then not elected while another member surely has the records. Without them no setting "
        "prevents it: a broker that comes back on an emptied, older or new disk while it is in "
        "the recorded ISR leads without the records if it starts before the other members. Start "
        "it only once another member leads. What your own cluster leaves open: "
        "replication-analyzer preflight DESCRIBE CONFIGS",
        "the log end that the broker's start prints, beside what its lines or other logs show "
        "that it had",
    ),
    "last_replica_standing": CausePage(
        "the same, of the last member of an ISR below `min.insync.replicas` (KIP-966)",
        "eligible leader replicas (feature eligible.leader.replicas.version=1, from 4.0 on): after "
        "an unclean stop the broker is not elected as long as another replica surely has the "
        "records",
        "the ISR before the election, the unclean stop, and the log end that the start prints",
    ),
    "acks_one_failover": CausePage(
        "acknowledged at acks=1, and the next leader had not copied it",
        "acks=all at the producer, with min.insync.replicas of 2 or more. acks=1 promises nothing "
        "beyond the leader's own log",
        "the producer's setting, and the log end with which the next leader began",
    ),
    "divergence_overwrite": CausePage(
        "another line of records took the offsets",
        "Kafka 2.1 or later on every broker: followers find the last epoch that they share with "
        "the leader (KIP-279), and fetches carry the leader epoch (KIP-320)",
        "the leader epochs of the records at the same offset in two logs",
    ),
    "out_of_range_reset": CausePage(
        "a follower reset its log by offset alone",
        "Kafka 2.1 or later: fetches carry the leader epoch (KIP-320). Before, no unclean election "
        "and no leader that lost its log",
        "the follower's line about an offset out of range, and where its log began afterwards",
    ),
    "early_isr_join": CausePage(
        "a replica joined the ISR before it had everything (KAFKA-7128)",
        "Kafka 2.0.1, 2.1 or later: whoever joins the ISR must have reached the start of the "
        "leader's epoch",
        "the line that expands the ISR, beside the log end of the replica that joined",
    ),
    "premature_high_watermark": CausePage(
        "the high watermark passed records that a member of the ISR lacked",
        "Kafka 2.7.2, 2.8.1, 3.0 or later (KAFKA-13141). One way is open in each release from 0.9 "
        "on: a leader that did not hear of another leader's epoch and leads again counts fetches "
        "of before",
        "the leader's high watermark beside the log ends of its followers, at TRACE level",
    ),
    "log_dir_failure": CausePage(
        "a log directory failed",
        "acks=all and min.insync.replicas of 2 or more: the other members of the ISR have the "
        "records. Several log directories in a broker bound what one disk takes with it",
        "the lines about an offline log directory",
    ),
    "unknown": CausePage(
        "not known: `causes` lists what it may be, where the histories share a list",
        "cannot be said of a cause that is not known",
        "`settled_by` of the verdict: the artefact that would tell the histories apart",
    ),
}

# Column -> what its words mean, as docs/answers.md has it.
VALUES = {
    "verdict": {
        "HOLDS": "every history that fits the evidence keeps the promise",
        "VIOLATED": "every history that fits the evidence breaks the promise",
        "UNKNOWN": "histories of both kinds fit; settled_by names what would decide it",
    },
    "invariant": {
        "committed_records_survive": "a record is absent from the log of a later valid leader, "
        "was not lawfully removed, and had been below the high watermark of a valid leader or "
        "acknowledged by one with acks=all; also where a still later leader has it again "
        "(status `recovered`)",
        "acknowledged_records_survive": "the same happened to a record that was acknowledged "
        "with any acks but 0",
        "consumed_records_survive": "a record that a consumer was given is absent from the log, "
        "or another one is in its place",
        "log_matching": "two replicas hold different records at one offset, and the difference "
        "is `settled`",
        "single_leader_per_epoch": "two brokers took, or were given, the leadership of one "
        "leader epoch",
        "leader_epochs_monotonic": "a later record of the controller carries a lower leader epoch",
        "leader_in_isr": "a record of the controller names a leader outside its ISR",
        "isr_within_assignment": "a record of the controller has a replica in the ISR that is "
        "not assigned",
        "leader_high_watermark_monotonic": "the high watermark of a leader fell within one "
        "leader epoch and one life of the broker; up to Kafka 2.3 two requests at once may set "
        "it back for a moment, which is no violation",
        "high_watermark_within_log": "the high watermark of a broker that was stopped lies past "
        "the end of its log",
        "version_conformance": "a replica did what the rules of its own Kafka release exclude",
    },
    "evidence": {
        "traced": "each step of the brokers is known as an event",
        "forensic": "the steps are inferred from logs, directories and lines",
    },
    "tier": {
        "consumed": "a consumer was given it",
        "acknowledged_by_isr": "acknowledged with acks=all",
        "committed": "below a valid high watermark; acknowledged with acks=1, or not known whether "
        "it was",
        "acknowledged_by_leader": "acknowledged with acks=1",
        "never_acknowledged": "below a valid high watermark, and no acknowledgement names it (with "
        "`--all-producers` only)",
        "undetermined": "the tier hangs on acknowledgements that are declared missing",
    },
    "status": {
        "lost": "absent from the leader and from every replica assigned since the write",
        "recoverable": "a replica, or a directory set aside, holds it outside the leader's "
        "history; `destroyed_when` says what would end that",
        "recovered": "gone from one leader, back in a later one",
        "undetermined": "whether it is elsewhere, or back, is not known; replicas that may hold it "
        "are named",
    },
    "contract": {
        "broken": "Kafka had promised, under the settings of that time, to keep the records",
        "not_promised": "the settings of that time permit the loss: an acks=1 failover, an unclean "
        "election that was allowed, storage loss on at least `min.insync.replicas` members",
        "unknown": "settings, cause or promise are not known",
    },
    "status of a divergence": {
        "settled": "the difference stays: no truncation of this release removes it",
        "pending": "the logs differ, and that the difference stays is not certain for all of these "
        "offsets: the next truncation removes it, or may remove it where the leader's log or the "
        "release is not known; or compaction or retention may have removed one side; or the "
        "histories leave open at which offset it ends",
        "header_mismatch": "equal bytes under different leader epochs, which no checksum covers: "
        "the verdict is UNKNOWN",
    },
}
# A word of a column, in the sentence that says what the column holds.
WORD = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


def explained(word: str) -> str | None:
    """The pages of a word, one for each thing that it means; None where it has none."""
    pages = [_of_cause(word, CAUSES[word])] if word in CAUSES else []
    pages += [_of_assumption(ASSUMPTIONS[word])] if word in ASSUMPTIONS else []
    for column, meanings in VALUES.items():
        if word in meanings:
            said = [("it means", meanings[word])]
            if column == "invariant":
                said = [("VIOLATED when", meanings[word]), ("HOLDS when", HOLDS_WHEN)]
            pages.append(_page(f"{word}: {_a(column)}", *said))
    tables, columns, said_of = _schemas()
    if word in tables:
        asked = ("ask", f"SELECT * FROM {word}")
        pages.append(_page(f"{word}: a table or view", ("it holds", tables[word]), asked))
    told = columns.get(word)
    if told is None and not pages:
        told = said_of.get(word)
    if told is not None:
        what = "a column" if word in columns else "a word in a column"
        rows = [(", ".join(names), meaning) for meaning, names in told.items()]
        values = VALUES.get(word, {})
        rows += [(value, meaning) for value, meaning in values.items()]
        pages.append(_page(f"{word}: {what}", *rows))
    return "\n".join(pages) or None


def words() -> list[str]:
    """Every word that has a page."""
    tables, columns, said_of = _schemas()
    values = [value for meanings in VALUES.values() for value in meanings]
    return [*CAUSES, *ASSUMPTIONS, *values, *tables, *columns, *said_of]


# Word -> meaning -> the places that it is the meaning of.
Meanings = dict[str, dict[str, list[str]]]


@cache
def _schemas() -> tuple[dict[str, str], Meanings, Meanings]:
    """Of schemas/: what each table holds, what each column means, and which columns name a word
    with an underline among what they hold."""
    tables: dict[str, str] = {}
    columns: Meanings = {}
    said_of: Meanings = {}
    for path in sorted((project_root() / "schemas").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        tables[schema["table"]] = schema["about"]
        for column in schema["columns"]:
            meaning = column["meaning"]
            columns.setdefault(column["name"], {}).setdefault(meaning, []).append(schema["table"])
            for word in set(WORD.findall(meaning)):
                place = f"{schema['table']}.{column['name']}"
                said_of.setdefault(word, {}).setdefault(meaning, []).append(place)
    return tables, columns, said_of


def _of_cause(word: str, page: CausePage) -> str:
    return _page(
        f"{word}: a cause of lost records",
        ("what happened", page.meaning),
        ("in the answer", f"Why: {CAUSE_WORDS[word]}"),
        ("prevented by", page.prevented_by),
        ("where it shows", page.look_at),
        ("losses with it", f"SELECT * FROM loss_ledger WHERE cause = '{word}'"),
    )


def _of_assumption(assumption: Assumption) -> str:
    return _page(
        f"{assumption.name}: an assumption",
        ("taken for granted", assumption.sentence),
        ("withdrawn by", assumption.withdrawn_by),
        ("not needed with", assumption.unnecessary_with),
        ("without it", "--strict makes no assumption: what rested on one is UNKNOWN then"),
    )


def _page(title: str, *rows: tuple[str, str]) -> str:
    lines = [title]
    for label, text in rows:
        first = f"  {label + ':':<20}"
        if len(label) > 18:
            lines += textwrap.wrap(f"{label}:", WIDTH, initial_indent="  ", subsequent_indent="  ")
            first = " " * 22
        lines += textwrap.wrap(
            text.replace("`", ""), WIDTH, initial_indent=first,
            subsequent_indent=" " * 22, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def is_of_rows(word: str) -> bool:
    """Whether a word applies to rows of an answer, and is not the name of a table or column."""
    return word in {*CAUSES, *ASSUMPTIONS, *(v for known in VALUES.values() for v in known)}


def in_evidence(word: str, answer: dict[str, Any]) -> Iterable[str]:
    """A line for each row of an answer to which a word applies: a cause, an assumption, a value."""
    for loss in answer["losses"]:
        single = (loss[column] for column in ("cause", "tier", "status", "contract"))
        if word in (*single, *loss["causes"], *loss["assuming"]):
            where = f"{name(loss)} {offsets(loss['first_offset'], loss['end_offset'])}"
            told = counted(loss["records"], "record")
            yield f"  {where}: {told} {loss['status']}, finding {loss['finding_id']}"
    for verdict in answer["verdicts"]:
        if word in (verdict["verdict"], verdict["evidence"], *verdict["assuming"]):
            yield f"  {name(verdict)} {verdict['invariant']}: {verdict['verdict']}"
