"""docs/running.md and kubernetes.md: every example is one that the programs would take."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from replication import submit
from replication.quality import command as quality
from replication.spark import (
    failures,
    import_artifacts,
    incident_page,
    maintain,
    replay,
    stream,
    views,
)
from tests.container_recipes import RECIPES

ROOT = Path(__file__).parents[2]
PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("running.md", "kubernetes.md")
)
PARSERS = {
    "replication-stream": stream.parser, "replication-replay": replay.parser,
    "replication-import": import_artifacts.parser, "replication-quality": quality.parser,
    "replication-report": incident_page.parser, "replication-maintain": maintain.parser,
    "replication-views": views.parser,
}  # fmt: skip


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def manifests() -> list[dict[str, Any]]:
    return [one for text in blocks("yaml") for one in YAML(typ="safe").load_all(text)]


def containers() -> Iterator[dict[str, Any]]:
    for one in manifests():
        spec = one["spec"]
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        yield from spec.get("template", {}).get("spec", {}).get("containers", ())


def calls() -> list[list[str]]:
    lines = [shlex.split(line) for text in blocks("") for line in text.splitlines()]
    told = [[*c["command"], *map(str, c["args"])] for c in containers()]
    return [words for words in [*lines, *told] if words and words[0].startswith("replication-")]


@pytest.mark.parametrize("call", calls(), ids=" ".join)
def test_each_call_is_one_that_spark_submit_and_the_job_take(call: list[str]) -> None:
    own, rest = submit._split(call[1:])
    assert all(w in submit.WITH_VALUE for w in own if w.startswith("--"))
    PARSERS[call[0]]().parse_args(rest)


def test_there_are_calls_for_each_engine() -> None:
    masters = {call[call.index("--master") + 1] for call in calls() if "--master" in call}
    assert {"spark://master:7077", "yarn", "local[4]"} <= masters


def test_manifests_name_what_they_mount_and_claim() -> None:
    claims = {m["metadata"]["name"] for m in manifests() if m["kind"] == "PersistentVolumeClaim"}
    assert [m["kind"] for m in manifests()] == ["PersistentVolumeClaim", "Deployment", "CronJob"]
    for one in manifests()[1:]:
        spec = one["spec"].get("jobTemplate", one)["spec"]["template"]["spec"]
        volumes = {v["name"]: v for v in spec["volumes"]}
        mounts = [m["name"] for c in spec["containers"] for m in c["volumeMounts"]]
        assert set(mounts) == set(volumes)
        named = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values()
                 if "persistentVolumeClaim" in v}  # fmt: skip
        assert named <= claims


def test_images_are_those_of_the_recipes() -> None:
    built = re.findall(r"docker build -f (\S+) -t (\S+) \.", PAGE)
    assert sorted(ROOT / path for path, _ in built) == RECIPES
    names = {name for _, name in built}
    assert {c["image"].removesuffix(":latest") for c in containers()} <= names
    for path, name in built:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"docker build -f {path} -t {name} ." in text


STATUSES = PAGE.partition("## Exit statuses")[2].partition("## Logs")[0]


def told_rows() -> dict[str, str]:
    """By the first cell of each row of the section's tables, the rest of it."""
    rows = re.findall(r"^\| ([^|]+) \|(.*)\|$", STATUSES, re.MULTILINE)
    return {word: rest for first, rest in rows for word in first.split(", ")}


def statuses_in_the_table(job: str) -> set[int]:
    """The columns of a job that say something."""
    [cells] = [
        rest
        for name, rest in told_rows().items()
        if name.strip("`").removeprefix("replication") == job.removeprefix("replication")
    ]
    return {number for number, cell in enumerate(cells.split("|")) if cell.strip()}


@pytest.mark.parametrize("job", PARSERS)
def test_the_table_has_the_exit_statuses_that_the_job_tells(job: str) -> None:
    told = PARSERS[job]().epilog or ""
    said = told.partition("Exit status: ")[2].partition(".")[0]
    assert statuses_in_the_table(job) == {int(n) for n in re.findall(r"(?:^|, )(\d) ", said)}


def test_each_status_that_ends_badly_has_what_to_do() -> None:
    bad = {failures.EXIT_UNUSABLE, failures.EXIT_DEFECT, failures.EXIT_TRY_AGAIN}
    assert {str(status) for status in bad} <= set(told_rows())
