"""The example of docs/expectations.md, run over a real incident, says what the page shows."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.quality import checks, suites, verdict_sums
from replication.quality.great_expectations_suite import Judge
from replication.quality.suites import SuiteError
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


@pytest.mark.spark
def test_an_own_file_that_is_not_chosen_is_looked_at_all_the_same(
    session: SparkSession, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever mends one suite at a time would learn of a misspelt column weeks later."""

    def checked(toml: str, table: str = "loss_ledger") -> tuple[int, str]:
        for old in tmp_path.glob("*.toml"):
            old.unlink()
        (tmp_path / f"{table}.toml").write_text(toml, encoding="utf-8")
        asked = ["--tables", str(healthy), "--suite", "findings", "--expectations", str(tmp_path)]
        flags = check_quality.parser().parse_args(asked)
        shipped = project_root() / "conf" / "expectations"
        chosen = suites.load(shipped, tuple(flags.suite), flags.expectations)
        return check_quality.check(session, flags, chosen), capsys.readouterr().out

    status, said = checked(TOML)
    assert (status, "loss_ledger" in said) == (0, False), said
    status, said = checked(TOML.replace("topic = 't'", "topik = 't'"))
    assert status == 2
    assert said.startswith(
        "NOT JUDGED  critical  loss_ledger.no_acknowledged_record_of_t_is_lost\n"
    )
    assert "no column topik (did you mean topic?)" in said
    assert "few_partitions_lose" not in said
    with pytest.raises(SuiteError, match=r"asks for finding: .*\(did you mean findings\?\)"):
        checked(TOML.replace("FROM {findings}", "FROM {finding}"))
    with pytest.raises(SuiteError, match=r"asks for loss_leger: .*\(did you mean loss_ledger\?\)"):
        checked(TOML, "loss_leger")
