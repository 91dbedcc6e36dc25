"""The example of docs/expectations.md, run over a real incident, says what the page shows."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.quality import checks, suites, verdict_sums
from replication.quality.great_expectations_suite import Judge
from replication.spark import views
from tests.quality.conftest import events_of
from tests.spark.jobs_in_process import run_replay

PAGE = (project_root() / "docs" / "expectations.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("<!-- example")[1].split("<!-- end -->")[0]
TOML, SAID = re.findall(r"```(?:toml)?\n(.*?)```", EXAMPLE, re.S)


def test_the_page_names_every_key_and_kind() -> None:
    words = set(re.findall(r"`(\w+)`", PAGE))
    wanted = {*suites.NEEDS, *suites.FAMILIES, *suites.SEVERITIES, *suites.COMMON}
    wanted |= {key for needs in suites.NEEDS.values() for key in needs} | {"detail", "reason"}
    assert wanted <= words


@pytest.mark.spark
def test_the_example_of_the_page_says_what_the_page_shows(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    write_events(tmp_path / "in" / "e.jsonl", events_of("unclean_election__4.1.1"))
    run_replay(session, tmp_path, "tables")
    own = tmp_path / "own"
    own.mkdir()
    (own / "loss_ledger.toml").write_text(TOML, encoding="utf-8")
    joined = suites.load(project_root() / "conf" / "expectations", ("loss_ledger",), own)
    suite = suites.load(own)[0]
    (ours,) = [each for each in joined if each.table == suite.table]
    assert set(suite.expectations) < set(ours.expectations)
    found = views.opened(session, tmp_path / "tables")
    results = checks.run(session, [suite], found.register(), Judge("own"))
    assert checks.text(results) == SAID.strip()
    assert checks.exit_status(results) == checks.EXIT_FAILED
    sums = verdict_sums.sums_of(found.frame("verdicts"), found.frame("replica_states"))
    assert f"```\n{sums}\n```" in PAGE
