"""docs/answer.schema.json describes every field of every answer, and no answer breaks it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "answer.schema.json").read_text("utf-8"))
INCIDENTS = sorted(p for p in (ROOT / "tests" / "incidents").iterdir() if p.is_dir())


def closed(schema: Any) -> Any:
    """The schema with no room for a field that it does not describe."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if isinstance(inner.get("properties"), dict) and "type" in inner:
        inner["additionalProperties"] = False
    return inner


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda path: path.name)
def test_every_field_of_every_answer_is_described(
    incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["diagnose", "--format", "json", str(incident)])
    answer = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(closed(SCHEMA))
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(answer)]
    assert wrong == [], "add what is new to docs/answer.schema.json"


def test_a_word_that_is_no_verdict_is_refused() -> None:
    verdicts = SCHEMA["properties"]["verdicts"]["items"]["properties"]["verdict"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate("MAYBE", verdicts)
