"""`explain` of a word: each cause and assumption has a page; a misspelt one names its neighbour."""

import json
import re
import shutil
from pathlib import Path

import pytest

from replication.cli import main
from replication.protocol.histories.assumptions import ASSUMPTIONS
from replication.protocol.judgement.judge import INVARIANTS
from replication.reports.explained_words import CAUSES, VALUES, explained, words
from replication.reports.vocabulary import CAUSE_WORDS, CONTRACT_WORDS, STATUS_WORDS, TIER_WORDS
from replication.reports.words import with_paths

ROOT = Path(__file__).parents[2]
INCIDENT = "unclean_election__4.1.1"
LOST = str(ROOT / "tests" / "incidents" / INCIDENT)


def test_every_cause_has_a_page_and_the_contract_the_same_words() -> None:
    assert CAUSES.keys() == CAUSE_WORDS.keys()
    contract = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    table = contract.partition("| `cause`")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", table, re.MULTILINE))
    assert told == {name: page.meaning for name, page in CAUSES.items()}


@pytest.mark.parametrize("word", [*CAUSES, *ASSUMPTIONS])
def test_a_page_needs_no_evidence(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 0
    page = capsys.readouterr().out
    assert page == explained(word)
    assert page.startswith(f"{word}: a")
    assert max(map(len, page.splitlines())) <= 100


def test_every_value_of_the_contract_has_its_words() -> None:
    contract = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    heads = {
        "tier": "`tier`, the first that applies", "status": "`status`",
        "status of a divergence": "`status` of a divergence", "contract": "`contract`",
        "invariant": "invariant",
    }  # fmt: skip
    for column, head in heads.items():
        table = re.split(rf"\| {head} \|.*\|\n", contract)[1].partition("\n\n")[0]
        told = dict(re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", table, re.MULTILINE))
        assert told == VALUES[column]
    assert VALUES["tier"].keys() == TIER_WORDS.keys()
    assert VALUES["invariant"].keys() == {m.__name__.rsplit(".", 1)[1] for m in INVARIANTS}
    assert VALUES["contract"].keys() == CONTRACT_WORDS.keys()
    assert VALUES["status"].keys() | {"at_risk"} == STATUS_WORDS.keys()


def test_every_table_and_column_that_a_reader_meets_is_explained() -> None:
    met = 0
    for path in (ROOT / "schemas").glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        for word in [schema["table"], *(column["name"] for column in schema["columns"])]:
            page = explained(word)
            assert page is not None, word
            assert word in page
            met += 1
    assert met > 300
    assert "a column\n  loss_ledger, lost_records:" in str(explained("contract"))
    assert "at_risk.failure:" in str(explained("leader_stops"))
    both = str(explained("undetermined"))
    assert "undetermined: a tier\n" in both
    assert "undetermined: a status\n" in both
    assert max(len(line) for word in words() for line in str(explained(word)).splitlines()) <= 100


def test_with_evidence_it_says_where_the_word_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "unclean_election", LOST]) == 0
    row = "  t-0 offsets 20..29: 10 records lost, finding 13ff94368ca89895"
    assert capsys.readouterr().out.splitlines()[-2:] == ["In this evidence:", row]
    assert main(["explain", "not_promised", LOST]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["In this evidence:", row]
    assert main(["explain", "contract", LOST]) == 0
    assert "In this evidence" not in capsys.readouterr().out
    assert main(["explain", "storage_loss", LOST]) == 0
    assert capsys.readouterr().out.endswith("In this evidence:\n  nothing\n")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (["explain", "contrac"], "contrac: no word that is explained (did you mean contract?)"),
        (["explain", "unclean_electoin"], "(did you mean unclean_election or"),
        (["explain", "disk_keeps", LOST], "(did you mean disks_keep?)"),
        (
            ["explain", "nothing_like_it", LOST],
            "findings: 13ff94368ca89895 (t-0 offsets 20..29, lost)",
        ),
    ],
)
def test_a_misspelt_word_names_its_neighbour(
    call: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (["diagnos", LOST], "no 'diagnos' (did you mean diagnose?)"),
        (["diagnose", LOST, "--fromat", "json"], "--fromat (did you mean --format?)"),
        (["diagnose", LOST, "--time-zome=UTC"], "(did you mean --time-zone?)"),
        (["diagnose", LOST, "--format", "jason"], "no 'jason' (did you mean json?)"),
        (["diagnose", LOST, "--format", "xml"], "no 'xml': there are text, json"),
        (["diagnose", LOST, "--zzz"], "unrecognized arguments: --zzz (replication-analyzer"),
    ],
)
def test_a_misspelt_call_names_its_neighbour(
    call: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(call)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("replication-analyzer decide PATH", "replication-analyzer decide 'a b' c"),
        ("replication-analyzer explain 1f PATH", "replication-analyzer explain 1f 'a b' c"),
        ("replication-analyzer trace PATH --x", "replication-analyzer trace 'a b' c --x"),
        ("a PATH of somebody's", "a PATH of somebody's"),
        ("replication-analyzer explain 1f PATHS", "replication-analyzer explain 1f PATHS"),
    ],
)
def test_commands_have_the_paths_of_the_call(text: str, told: str) -> None:
    assert with_paths(text, ["a b", "c"]) == told
    assert with_paths(text, ["/long" * 50]) == text
    assert with_paths(text, []) == text


def test_a_proof_quotes_the_line_that_each_step_was_read_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an archive, too, whose file is gone when the answer is printed."""
    packed = shutil.make_archive(str(tmp_path / "incident"), "gztar", LOST)
    for evidence in (LOST, packed):
        assert main(["explain", "13ff94368ca89895", str(evidence)]) == 0
        said = capsys.readouterr().out
        steps = re.findall(r"because: \S*?([^/\s]+), line (\d+)\n     \| (.*)\n", said)
        assert [name for name, _, _ in steps] == ["acks.jsonl", "state-change.log"]
        for name, number, quoted in steps:
            [path] = [p for p in Path(LOST).rglob(name) if p.parent.name in ("broker-2", INCIDENT)]
            assert path.read_text("utf-8").splitlines()[int(number) - 1][:400] == quoted[:400]


def test_what_is_no_finding_is_answered_with_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An id alone says nothing of what it is about."""
    row = "13ff94368ca89895 (t-0 offsets 20..29, lost)"
    assert main(["explain", "deadbeef", LOST]) == 2
    assert row in capsys.readouterr().err
    assert main(["explain", "t-0", LOST]) == 2
    said = capsys.readouterr().err
    assert "no question about t-0 is left open by two histories; its findings:" in said
    assert row in said
    assert main(["diagnose", "--topic", "tt", LOST]) == 2
    assert "no topic tt in this evidence; there are t" in capsys.readouterr().err


PREVENTS = [("4.3.0", "on", 2, 0), ("4.3.0", "off", 2, 1), ("4.3.0", "on", 1, 1)]


@pytest.mark.parametrize(("release", "eligible", "members", "status"), PREVENTS)
def test_what_prevents_a_loss_with_a_disk_prevents_it_by_preflight(
    release: str, eligible: str, members: int, status: int, tmp_path: Path
) -> None:
    """What `explain storage_loss` names closes that failure; without either half of it, nothing."""
    told = CAUSES["storage_loss"].prevented_by
    assert "eligible.leader.replicas.version=1" in told
    assert "min.insync.replicas of 2 or more" in told
    configs = f"min.insync.replicas={members},unclean.leader.election.enable=false"
    described = tmp_path / "described.txt"
    described.write_text(
        f"Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: {configs}\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    )
    call = ["preflight", str(described), "--kafka", release, "--controller", "kraft", "--elr"]
    asked = ["--failure", "one_disk,directory_deleted", "--records", "acks_all", "--no-changes"]
    assert main([*call, eligible, *asked]) == status
