"""The tables of docs/ that are the code's own: rules, flags by release, Delta tables and columns.

`python -m tests.docs.tables --write` puts them between their marks.
"""

import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client.metrics import MetricWrapperBase
from ruamel.yaml import YAML

from replication.evidence.collecting import envelopes
from replication.protocol.ground.boundaries import BOUNDARIES
from replication.protocol.ground.events import FACT_TYPES
from replication.protocol.rules import RULES
from replication.quality.metrics import Metrics as QualityMetrics
from replication.reports import event_words
from replication.spark.answer_tables import APPENDED
from replication.spark.metrics import Metrics as StreamMetrics

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ALERTS = ROOT / "conf" / "prometheus" / "alerts.yml"
# The rooms whose floors a contributor is shown.
DRAWN = ("replication", "replication.protocol", "replication.protocol.histories",
         "replication.evidence")  # fmt: skip
# Columns that nearly every table has; told once.
COMMON = (
    "topic_partition_id", "cluster_id", "incident", "topic", "topic_id", "partition", "run",
    "micro_batch_id",
)  # fmt: skip
WRITTEN = {
    "current": "the current answer, each row once",
    "append": "only grows",
    "taken back": "grows; rows that a late event shows not to count are deleted",
    "evidence": "by `import --tables`, each row once",
    "view": "a view",
}
FIELD_FLAGS = {
    envelopes.LINE_FIELDS: "`--line-field`", envelopes.HOST_FIELDS: "`--host-field`",
    envelopes.PATH_FIELDS: "`--path-field`", envelopes.CLUSTER_FIELDS: "`--cluster-field`",
}  # fmt: skip
MARK = "<!-- {}: written by `python -m tests.docs.tables --write` -->\n"
END = "<!-- end -->"


def rules_table() -> str:
    """A row per rule, in the order of RULES: its name, and the first line of its file."""
    rows = ["| rule | decides |", "|---|---|"]
    for rule in RULES:
        doc = inspect.getdoc(sys.modules[rule.__module__]) or ""
        rows.append(f"| `{rule.__name__}` | {' '.join(doc.split(chr(10) * 2)[0].split())} |")
    return "\n".join(rows) + "\n"


def flags_table() -> str:
    """A row per flag: the first releases that have it, what else it needs, and what it means."""
    rows = [
        "| flag | from (also needs) | until | what it means | source |",
        "|---|---|---|---|---|",
    ]
    for b in BOUNDARIES:
        needs = f" ({b.inter_broker_version})" if b.inter_broker_version else ""
        rows.append(
            f"| `{b.flag}` | {', '.join(b.first_releases)}{needs} | {', '.join(b.ended_by)} "
            f"| {b.means} | {b.source} |"
        )
    return "\n".join(rows) + "\n"


def _schemas() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted((ROOT / "schemas").glob("*.json"))]
    return sorted(found, key=lambda each: (str(each["table"]).startswith("_"), each["table"]))


# Which tables a page of columns has; each page is for one kind of reader.
COLUMNS = {
    "columns_answers.md": (
        "divergences", "findings", "loss_ledger", "lost_records", "replica_log_spans",
        "replica_states", "verdicts",
    ),
    "columns_clients.md": (
        "affected_groups", "affected_transactions", "decisions", "lost_records_keys",
    ),
    "columns_live.md": (
        "at_risk", "current_leadership", "incident_timeline", "isr_and_leadership", "next_failure",
        "unclean_elections", "under_replicated",
    ),
    "columns_events.md": ("current_events", "replica_at", "replica_events"),
    "columns_operation.md": (
        "event_totals", "expectation_results", "quarantine", "_batches", "_refolds",
    ),
}  # fmt: skip


def delta_tables() -> str:
    """A row per table and view: how it is written, and what a row of it is."""
    rows = ["| table | written | a row is |", "|---|---|---|"]
    for each in _schemas():
        name = each["table"]
        written = WRITTEN["taken back" if name in APPENDED else each["written"]]
        [page] = [page for page, tables in COLUMNS.items() if name in tables]
        rows.append(f"| [`{name}`]({page}#{name}) | {written} | {each['about']} |")
    return "\n".join(rows) + "\n"


def columns(page: str) -> str:
    """Every column of a page's tables, but those that nearly every table has: type and meaning."""
    parts = []
    for each in _schemas():
        if each["table"] in COLUMNS[page]:
            own = [column for column in each["columns"] if column["name"] not in COMMON]
            parts.append(f"## {each['table']}\n\n{each['about']}\n\n{_rows(own)}")
    return "\n".join(parts)


def common_columns() -> str:
    """The columns of COMMON, as the first table that has each tells it."""
    found: dict[str, dict[str, Any]] = {}
    for each in _schemas():
        for column in each["columns"]:
            found.setdefault(column["name"], column)
    return _rows([found[name] for name in COMMON])


def _rows(columns: list[dict[str, Any]]) -> str:
    rows = ["| column | type | meaning |", "|---|---|---|"]
    for column in columns:
        kind = f"`{column['type']}`" + ("" if column["nullable"] else ", never null")
        rows.append(f"| `{column['name']}` | {kind} | {column['meaning']} |".replace("\n", " "))
    return "\n".join(rows) + "\n"


def kinds_table() -> str:
    """A row per kind of event: what happened, and the columns it must and may have."""
    [schema] = [each for each in _schemas() if each["table"] == "replica_events"]
    rows = ["| kind | what it says | must have | may have |", "|---|---|---|---|"]
    for kind, fact in FACT_TYPES.items():
        about = " ".join((inspect.getdoc(fact) or "").split("\n\n")[0].split())
        must, may = (
            ", ".join(f"`{c['name']}`" for c in schema["columns"] if kind in c.get(for_, ()))
            for for_ in ("required_for", "optional_for")
        )
        rows.append(f"| `{kind}` | {about} | {must} | {may} |")
    return "\n".join(rows) + "\n"


WORDS_OF = {
    ("election_kind", "leadership_recorded"): event_words.ELECTION_WORDS,
    ("reason", "replica_stopped"): event_words.STOP_WORDS,
    ("reason", "truncated"): {**event_words.CUT_WORDS, "unknown": "why is not shown"},
    ("reason", "log_start_advanced"): event_words.START_WORDS,
    ("subject", "coverage_declared"): event_words.SUBJECT_WORDS,
}


def words_table() -> str:
    """A row per column and kind whose text is one of few words, with what each means."""
    [schema] = [each for each in _schemas() if each["table"] == "replica_events"]
    rows = ["| column | of | words |", "|---|---|---|"]
    for column in schema["columns"]:
        for kind, words in column.get("words", {}).items():
            said = WORDS_OF[column["name"], kind]
            told = "; ".join(f"`{word}` ({said[word]})" for word in words)
            rows.append(f"| `{column['name']}` | `{kind}` | {told} |")
    return "\n".join(rows) + "\n"


def metrics_table() -> str:
    """A row per metric of the stream and of the quality checks: type, labels, meaning."""
    rows = ["| metric | type | labels | what it is |", "|---|---|---|---|"]
    for metrics in (StreamMetrics(), QualityMetrics("", None)):
        for each in metrics.registry._collector_to_names:
            assert isinstance(each, MetricWrapperBase)
            name = each._name + ("_total" if each._type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in each._labelnames)
            rows.append(f"| `{name}` | {each._type} | {labels} | {each._documentation} |")
    return "\n".join(rows) + "\n"


def shipped_table() -> str:
    """A row per part of a shipped line: the fields that are looked at, and the flag for others."""
    rows = [
        "| of a line | fields, the first one that is there | a field of your own |",
        "|---|---|---|",
    ]
    for part, fields in (
        ("its text", envelopes.LINE_FIELDS), ("the host that printed it", envelopes.HOST_FIELDS),
        ("the file that it was in", envelopes.PATH_FIELDS),
        ("its cluster", envelopes.CLUSTER_FIELDS),
        ("the byte at which it begins", envelopes.OFFSET_FIELDS),
    ):  # fmt: skip
        flag = FIELD_FLAGS.get(fields, "")
        rows.append(f"| {part} | {', '.join(f'`{name}`' for name in fields)} | {flag} |")
    return "\n".join(rows) + "\n"


def alerts_table() -> str:
    """A row per alert rule: severity, how long it has to hold, what ends it."""
    rules = YAML(typ="safe").load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    found = [
        (r["alert"], r["labels"]["severity"], r.get("for", "at once"), r["annotations"]["ends"])
        for r in rules
    ]
    rows = [
        f"| `{alert}` | {severity} | {held} | {ends} |" for alert, severity, held, ends in found
    ]
    return "\n".join(
        ["| alert | severity | fires after | ends when |", "|---|---|---|---|", *rows, ""]
    )


def layers_drawing() -> str:
    """The floors of the house and of its three largest rooms, by the import contracts."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    blocks = []
    for contract in told["tool"]["importlinter"]["contracts"]:
        room = contract.get("containers", [""])[0]
        if room in DRAWN:
            layers = (re.sub(r"[()]", "", layer) for layer in contract["layers"])
            blocks.append("\n".join([f"{room}:", *(f"    {layer}" for layer in layers)]))
    return "```\n" + "\n\n".join(blocks) + "\n```\n"


def rooms_table() -> str:
    """A row per package: what the first sentence of its docstring says of it."""
    rows = ["| room | what is in it |", "|---|---|"]
    for path in sorted((ROOT / "replication").rglob("__init__.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if doc:
            room = path.parent.relative_to(ROOT).as_posix()
            rows.append(f"| `{room}` | {' '.join(doc.split(chr(10) * 2)[0].split())} |")
    return "\n".join(rows) + "\n"


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "layout.md": {"layers": layers_drawing, "rooms": rooms_table},
    "protocol.md": {"rules": rules_table},
    "protocol_releases.md": {"flags": flags_table},
    "live.md": {"shipped": shipped_table},
    "alerts.md": {"alerts": alerts_table, "metrics": metrics_table},
    "tables.md": {"tables": delta_tables, "common": common_columns},
    **{page: {"columns": partial(columns, page)} for page in COLUMNS},
}
TABLES["columns_events.md"] |= {"kinds": kinds_table, "words": words_table}


def with_tables(page: str) -> str:
    """The page of this name with every table as the code has it. ValueError without a mark."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, table in TABLES[page].items():
        mark = MARK.format(name)
        if mark not in text:
            raise ValueError(f"docs/{page} has no mark for {name}")
        text = re.sub(
            re.escape(mark) + r".*?" + re.escape(END),
            lambda _, mark=mark, table=table: f"{mark}\n{table()}\n{END}",
            text,
            flags=re.DOTALL,
        )
    return text


if __name__ == "__main__":
    for page in TABLES:
        if "--write" in sys.argv[1:]:
            (DOCS / page).write_text(with_tables(page), encoding="utf-8")
        else:
            print(with_tables(page))
