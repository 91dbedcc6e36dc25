"""docs/trace.schema.json describes every field of every story that `trace` tells."""

import json
from pathlib import Path

import jsonschema
import pytest

from replication.cli import main

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "trace.schema.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        ["unclean_election__4.1.1", "--client", "p1", "--groups"],
        ["chaos__1.1.1__seed39__trace", "--offset", "t-0:5"],
        ["acks1_loss__3.9.1", "--offset", "t-0:20"],
        ["kip101_scenario_1__0.10.2.2__loss_only", "--offset", "t-0:3"],
        ["healthy_rolling_restart__4.3.0", "--key", "nowhere"],
    ],
    ids=lambda words: words[0],
)
def test_every_field_of_a_story_is_described(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(
        ["trace", str(ROOT / "tests" / "incidents" / words[0]), *words[1:], "--format=json"]
    )
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, SCHEMA)
    assert bool(told["records"]) == (status == 0)
    assert (status == 1) == ("nowhere" in words)
