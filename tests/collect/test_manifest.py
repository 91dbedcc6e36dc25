"""What `collect PATH` says is missing: by its schema, and each gap with all that hangs on it."""

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main
from replication.collect.manifest import manifest
from replication.collect.words import text
from replication.reports.headline import undecided

ROOT = Path(__file__).parents[2]
INCIDENTS = ROOT / "tests" / "incidents"
SCHEMA = json.loads((ROOT / "docs" / "collect.schema.json").read_text("utf-8"))
# Of an incident: what is taken away, what of that is said to be missing, whether it is enough.
WITHHELD = {
    "nothing": ("unclean_election__4.1.1", (), (), True),
    "a broker": (
        "unclean_election__4.1.1",
        ("broker-2",),
        ("the broker log of broker 2", "the log directory of broker 2"),
        True,
    ),
    "all disks but one": (
        "kip101_scenario_1__0.10.2.2__loss_only",
        ("broker-2", "acks.jsonl"),
        ("the log directory of broker 2", "an acknowledgement log of the producers"),
        False,
    ),
    "all but the last copies of the disks": (
        "last_replica_standing__4.1.1__elr_off",
        (
            "acks.jsonl",
            "describe.txt",
            *(f"broker-{n}/disk-before-restart" for n in (1, 2, 3)),
            *(f"broker-{n}/{log}.log" for n in (1, 2, 3) for log in ("server", "state-change")),
            "controller-100/controller.log",
            "controller-100/server.log",
        ),
        ("the broker log of broker 2", "an acknowledgement log of the producers"),
        True,
    ),
    "the acknowledgements": (
        "acks1_loss__3.9.1",
        ("acks.jsonl",),
        ("an acknowledgement log of the producers",),
        True,
    ),
}


@pytest.mark.parametrize("which", WITHHELD)
def test_each_gap_is_named_with_what_hangs_on_it(
    which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, taken, missing, enough = WITHHELD[which]
    shutil.copytree(INCIDENTS / name, tmp_path / "e")
    for part in taken:
        path = tmp_path / "e" / part
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    status = main(["collect", "--format", "json", str(tmp_path / "e")])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, SCHEMA)
    gaps = {gap["missing"]: gap for gap in told["gaps"]}
    assert [what for what in missing if not any(g.startswith(what) for g in gaps)] == []
    assert status == (0 if enough else 3)
    main(["diagnose", "--format", "json", str(tmp_path / "e")])
    answer = json.loads(capsys.readouterr().out)
    for verdict in answer["verdicts"]:
        row = {k: verdict[k] for k in ("cluster_id", "topic", "topic_id", "partition", "invariant")}
        if verdict["verdict"] == "UNKNOWN":
            for what in verdict["settled_by"]:
                assert row | {"matters": verdict in undecided(answer)} in gaps[what]["unknown"]
        for assumed in verdict["assuming"]:
            assert any(a["name"] == assumed and row in a["made_by"] for a in told["assumed"])
    assert manifest(answer) == told
    main(["collect", str(tmp_path / "e")])
    said = capsys.readouterr().out
    # All that costs something is there, one after the other as in the JSON.
    places = [said.index(f"\n  {gap['missing']}\n") for gap in told["gaps"] if gap["unknown"]]
    assert places == sorted(places)
    assert all(row["name"] in said and row["not_needed_with"] in said for row in told["assumed"])
    free = said.partition("no verdict here hangs on it: ")[2].partition("\n")[0]
    for row in told["assumed"]:
        assert [what for what in row["missing"] if what in free or what not in said] == []


def test_evidence_that_lacks_nothing_says_so() -> None:
    answer = {"verdicts": [], "clusters": [], "losses": [], "incident": None,
              "inventory": {"brokers": [], "files": [{"path": "a", "kind": "acknowledgement log"}],
                            "archives": [], "ignored": []}}  # fmt: skip
    assert list(text(manifest(answer)))[-1] == "No verdict hangs on anything that is missing."
