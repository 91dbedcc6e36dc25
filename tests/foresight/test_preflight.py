"""What `preflight` says can be lost is lost by the machine; what it says cannot be is not."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main
from replication.foresight.answer import Asked, as_json, ask, exit_status
from replication.foresight.changes import closing
from replication.foresight.cluster import Profile
from replication.foresight.drawing import drawn
from replication.foresight.failures import BY_NAME, FAILURES
from replication.foresight.search import Bound, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, PROMISED
from replication.machine.scenario import Story, run_scenario
from replication.machine.scenario_text import Stanza, parse
from replication.machine.states import logs_of, number, valid_leader
from replication.protocol.ground.events import RecordsAcknowledged, RecordsConsumed
from tests.docs.test_answer_schema import closed
from tests.evidence.metadata_log.log_bytes import LOG, config, log, partition
from tests.evidence.metadata_log.log_bytes import topic as topic_record
from tests.foresight.sweep import PROFILES, found_by_default, sweep

ROOT = Path(__file__).parents[2]
INCIDENTS = ROOT / "tests" / "incidents"
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "preflight.schema.json").read_text("utf-8"))
QUICK = tuple(f.name for f in FAILURES if f.name not in ("two_brokers", "wrong_start_order"))
QUICK_PROFILES = tuple(PROFILES[n] for n in (3, 5, 6))
LAST_STANDING = Settings("3.9.1", 3, 2, False, "kraft")


def told(text: str) -> Story:
    """The story of a scenario, told anew."""
    commands = [c for part in parse(text) if isinstance(part, Stanza) for c in part.commands]
    story = Story(commands[0], None, None)
    for command in commands[1:]:
        if command.name != "check":
            story.tell(command)
    return story


def promised_in(story: Story, kind: str) -> set[tuple[int, int, int]]:
    """The records that the story's own facts promise in that way."""
    found = set()
    for step in story.world.steps:
        fact = step.fact
        answered = isinstance(fact, RecordsAcknowledged) and fact.acks == kind.removeprefix("acks_")
        if answered or (kind == "read" and isinstance(fact, RecordsConsumed)):
            assert isinstance(fact, RecordsAcknowledged | RecordsConsumed)
            found |= {
                (o, number(fact.leader_epoch), number(fact.content))
                for o in range(fact.first_offset, fact.end_offset)
            }
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", QUICK_PROFILES, ids=lambda s: f"{s.kafka_version}-{s.replicas}"
)
def test_every_history_that_is_drawn_loses_its_record(settings: Settings) -> None:
    """Told by the scenario runner: the record was promised, and the elected leader lacks it."""
    count = 0
    for name in QUICK:
        failure = BY_NAME[name]
        if failure.together == "rack" and not settings.racks:
            continue
        for kind, history in found_by_default(settings, failure).lost.items():
            text = drawn(settings, failure, history, kind)
            assert run_scenario(text) == (True, text)
            assert "cannot:" not in text
            if kind in PROMISED:
                assert "committed_records_survive VIOLATED" in text
            story = told(text)
            leader = valid_leader(story.world)
            assert leader is not None
            log = logs_of(story.world)[leader.replica]
            if kind != "committed":
                records = promised_in(story, kind)
                assert any(log.get(o) != (e, x) for o, e, x in records), (name, kind)
            count += 1
    assert count >= len(QUICK) - 2


def test_no_random_schedule_loses_what_cannot_be_lost() -> None:
    """More of it: `python -m tests.foresight.sweep 8000`."""
    score = sweep(range(16), QUICK, QUICK_PROFILES)
    assert not score.broken, score.broken[:3]
    assert score.counts["lost as foretold"] > 15


def test_a_real_cluster_lost_what_its_settings_allow() -> None:
    """The laboratory's last replica standing, with eligible leader replicas and without."""
    failures = "power_of_one,one_disk"
    lost = [
        main(["preflight", str(INCIDENTS / f"last_replica_standing__4.1.1__elr_{switch}"),
              "--failure", failures, "--no-changes"])
        for switch in ("off", "on")
    ]  # fmt: skip
    assert lost == [1, 0]


def test_of_several_values_in_the_metadata_log_the_last_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unclean, minimum = "unclean.leader.election.enable", "min.insync.replicas"
    first = [topic_record(), config(unclean, "true"), config(minimum, "1"), partition()]
    metadata = log(*first, config(unclean, "false"), config(minimum, "2"))
    for broker, release in ((1, "3.9.1"), (2, "4.1.1")):
        home = tmp_path / f"broker-{broker}"
        for name, written_there in (("__cluster_metadata-0", metadata), ("t-0", b"")):
            (home / name).mkdir(parents=True)
            (home / name / LOG).write_bytes(written_there)
        (home / "meta.properties").write_text(f"version=1\nnode.id={broker}\ncluster.id=abc\n")
        (home / "server.log").write_text(
            f"[2026-11-29 15:25:0{broker},000] INFO Kafka version: {release} "
            "(org.apache.kafka.common.utils.AppInfoParser)\n"
        )
    assert main(["preflight", str(tmp_path), "--failure", "one_broker", "--no-changes"]) == 0
    out = capsys.readouterr().out
    assert "min.insync.replicas 2, unclean election off" in out
    assert "The brokers run 3.9.1 and 4.1.1, and this is asked by the rules of 3.9.1" in out


def test_changes_close_the_loss_and_none_of_them_is_idle() -> None:
    settings = Settings("4.1.0", 3, 1, True, "kraft", eligible=False)
    failure = BY_NAME["one_disk"]
    losing = list(search(settings, failure, Bound()).lost.values())
    changes = closing(settings, failure, Bound(), losing)
    assert changes is not None
    assert len(changes) >= 2
    for left_out in [None, *changes]:
        then = settings
        for change in changes:
            then = then if change is left_out else change.apply(then)
        lost = search(then, failure, Bound(), PROMISED).lost
        assert bool(lost) is (left_out is not None)


def test_the_shortest_history_of_the_last_replica_standing() -> None:
    found = search(LAST_STANDING, BY_NAME["power_of_one"], Bound())
    moves = found.lost["acks_all"].moves
    assert [m[-1].split()[0] for m in moves] == [
        "produce", "fetch", "fetch", "isr", "isr", "crash", "start",
    ]  # fmt: skip
    assert found.steps is None


def test_alike_partitions_are_asked_once_and_racks_matter_to_racks_alone() -> None:
    one = Settings("3.9.1", 2, 1, False, "kraft", racks=(0, 0))
    other = Settings("3.9.1", 2, 1, False, "kraft", racks=(0, 1))
    asked = Asked(("one_rack", "one_disk"), Bound(), changes=False)
    profiles = [Profile(one, {"t": 2}), Profile(other, {"t": 1, "u": 1})]
    results = ask(profiles, asked)
    assert results[0][1] is results[1][1]
    assert results[0][0] is not results[1][0]
    answer = as_json(profiles, results, asked)
    assert (answer["topics"], answer["partitions"]) == (3, 4)
    assert exit_status(results, PROMISED) == 1


def written(folder: Path, topics: int = 1, settings: str = "min.insync.replicas=2") -> Path:
    lines = []
    for n in range(topics):
        lines += [
            f"Topic: t{n}\tTopicId: 2__hL4ioTz2vL9G9ufTZnQ\tPartitionCount: 1\t"
            f"ReplicationFactor: 2\tConfigs: {settings}",
            f"\tTopic: t{n}\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
        ]
    path = folder / "describe.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_every_field_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    status = main(["preflight", str(written(tmp_path)), "--kafka", "3.9.1", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(closed(SCHEMA))
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(answer)]
    assert wrong == [], "add what is new to docs/preflight.schema.json"
    assert status == 1
    assert {f["failure"] for f in answer["profiles"][0]["failures"]} == set(BY_NAME)


def test_settings_come_from_topics_then_brokers_then_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, 2, "")
    (tmp_path / "topics.txt").write_text(
        "Dynamic configs for topic t0 are:\n"
        "  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:x=2}\n",
        encoding="utf-8",
    )
    (tmp_path / "brokers.txt").write_text(
        "All configs for broker 1 are:\n"
        "  unclean.leader.election.enable=true sensitive=false synonyms={}\n"
        "  log.flush.interval.messages=1 sensitive=false synonyms={}\n"
        "All configs for broker 2 are:\n"
        "  log.flush.interval.messages=9223372036854775807 sensitive=false synonyms={}\n",
        encoding="utf-8",
    )
    (tmp_path / "server-1.properties").write_text(
        "# broker 1\nbroker.id=1\nbroker.rack=north\nzookeeper.connect=z:2181\n"
        "inter.broker.protocol.version=2.8\n",
        encoding="utf-8",
    )
    (tmp_path / "racks.txt").write_text("2 south\n", encoding="utf-8")
    assert main(["preflight", str(tmp_path), "--failure", "one_rack", "--format", "json"]) == 1
    by_topic = {p["topics"][0]["topic"]: p for p in json.loads(capsys.readouterr().out)["profiles"]}
    assert by_topic["t0"]["min_insync_replicas"] == 2
    assert by_topic["t1"]["min_insync_replicas"] == 1
    for profile in by_topic.values():
        assert profile["kafka_version"] == "2.8"
        assert profile["controller"] == "zookeeper"
        assert profile["racks"] == [0, 1]
        # One of the two brokers allows unclean elections, and one of them does not flush.
        assert profile["unclean_leader_election"] is True
        assert profile["flushes_each_record"] is False


FEATURES = "Feature: metadata.version\tSupportedMinVersion: 3.0\tFinalizedVersionLevel: 3.9-IV0\n"
SET = "  min.insync.replicas=2 sensitive=false\n"
SETTINGS = {
    "settings of brokers": f"All configs for broker 1 are:\n{SET}",
    "settings of topics": f"Dynamic configs for topic t are:\n{SET}",
    "features": FEATURES,
    "racks": "1 north\n2 south\n",
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_without_topics_ask_for_the_topics(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(SETTINGS[kind], encoding="utf-8")
    assert main(["preflight", str(path), "--kafka", "3.9.1"]) == 2
    said = capsys.readouterr().err
    assert f"the files say {kind}, but none says which topics there are" in said
    assert "kafka-topics --bootstrap-server B --describe" in said
    assert "no evidence" not in said


def test_brokers_whose_files_are_missing_are_named_and_a_topic_is_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["Topic: orders\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: "]
    lines += [
        f"\tTopic: orders\tPartition: {n}\tLeader: 1\tReplicas: {of}\tIsr: {of}"
        for n, of in enumerate(("1,2", "1,3", "2,3"))
    ]
    (tmp_path / "describe.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "broker-1.txt").write_text(SETTINGS["settings of brokers"], encoding="utf-8")
    (tmp_path / "racks.txt").write_text("1 a\n2 a\n3 b\n", encoding="utf-8")
    call = ["preflight", str(tmp_path), "--kafka", "3.9.1", "--failure", "one_disk", "--no-changes"]
    assert main(call) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 of 1 topic CAN LOSE ")
    assert "CAN LOSE  orders (2 of its 3 partitions), by" in said
    assert "CAN LOSE  orders (1 of its 3 partitions), by" in said
    assert "No file and no flag says these, so the release's defaults are taken: controller" in said
    (line,) = [each for each in said.splitlines() if "of other brokers" in each]
    assert "those of 2, 3 do not (or are missing)" in line
    assert "so of those the release's defaults are taken: min.insync.replicas 1." in line
    assert "--entity-name 2`" in line
    assert main([*call, "--format", "json"]) == 1
    for profile in json.loads(capsys.readouterr().out)["profiles"]:
        brokers = {d["setting"]: d["brokers"] for d in profile["defaults"]}
        assert brokers["flush.messages"] == []
        assert set(brokers["min.insync.replicas"]) <= {2, 3}


def test_a_thousand_topics_alike_are_one_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, 1000)
    assert main(["preflight", str(path), "--kafka", "3.9.1", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["topics"] == 1000
    assert len(answer["profiles"]) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no FILE given"),
        (["nowhere.txt"], "no such file"),
        (["{}"], "say it by --kafka"),
        (["{}", "--kafka", "9.9"], "--kafka"),
        (["{}", "--kafka", "3.9.1", "--failure", "flood"], "--failure: flood is none of"),
        (["{}", "--kafka", "3.9.1", "--records", ","], "--records: nothing is none of"),
        (["{}", "--kafka", "2.0.0", "--controller", "kraft"], "no KRaft mode"),
        (["{}", "--kafka", "3.9.1", "--elr", "on"], "eligible leader replicas need"),
    ],
)
def test_bad_input_is_said(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path))
    assert main(["preflight", *(a.format(path) for a in arguments)]) == 2
    assert says in capsys.readouterr().err


def test_a_setting_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 1, "min.insync.replicas=two")
    assert main(["preflight", str(path), "--kafka", "3.9.1"]) == 2
    assert "t0-0: min.insync.replicas is 'two'" in capsys.readouterr().err


def test_only_what_was_asked_for_counts(tmp_path: Path) -> None:
    call = ["preflight", str(written(tmp_path)), "--kafka", "3.9.1", "--no-changes"]
    assert main([*call, "--failure", "one_broker"]) == 0
    assert main([*call, "--failure", "one_broker", "--records", "acks_1"]) == 1
    assert set(KINDS) - set(PROMISED) == {"acks_1"}


SHORT = {
    "3.9.1": """\
2 of 2 topics CAN LOSE records that were answered with acks=all, read or committed.
  Kafka 3.9.1 (KRaft), eligible leader replicas off
    CAN LOSE  weak, by one_disk; min.insync.replicas 1: acks=all is answered with the leader alone
    CAN LOSE  good, by one_disk
    No file and no flag says these, so the release's defaults are taken: unclean.leader.election
    Without eligible leader replicas the last replica in the ISR is elected again, whatever its disk
""",
    "4.1.0": """\
1 of 2 topics CAN LOSE records that were answered with acks=all, read or committed.
  Kafka 4.1.0 (KRaft), eligible leader replicas on
    CAN LOSE  weak, by one_disk; min.insync.replicas 1: acks=all is answered with the leader alone
    well      good: none of the failures that were asked about loses one
    No file and no flag says these, so the release's defaults are taken: eligible.leader.replicas
""",
}


@pytest.mark.parametrize(("release", "good"), [("3.9.1", "can_lose"), ("4.1.0", "cannot")])
def test_the_first_lines_and_the_json_say_which_topics_are_well(
    release: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 3.9.1 a topic of min.insync.replicas 1 has the table of one of 2: the words differ."""
    lines = []
    for topic, least in (("good", 2), ("weak", 1)):
        lines += [
            f"Topic: {topic}\tTopicId: 2__hL4ioTz2vL9G9ufTZnQ\tPartitionCount: 1\t"
            f"ReplicationFactor: 3\tConfigs: min.insync.replicas={least}",
            f"\tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3",
        ]
    path = tmp_path / "describe.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    call = ["preflight", str(path), "--kafka", release, "--controller", "kraft", "--no-changes",
            "--failure", "one_disk,one_broker"]  # fmt: skip
    assert main(call) == 1
    said = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    for found, wanted in zip(said, SHORT[release].splitlines(), strict=True):
        assert found.startswith(wanted)
    assert main([*call, "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["answer"], answer["decided_by"]) == ("can_lose", list(PROMISED))
    of = {p["topics"][0]["topic"]: (p["answer"], p["can_lose_by"]) for p in answer["profiles"]}
    assert of == {
        "weak": ("can_lose", ["one_disk"]),
        "good": (good, ["one_disk"] if good == "can_lose" else []),
    }


@pytest.mark.parametrize(
    ("more", "status", "answer"),
    [
        (["--failure", "one_broker"], 0, "cannot"),
        (["--failure", "one_broker", "--records", "acks_1"], 1, "can_lose"),
        (["--failure", "two_brokers", "--states", "100"], 3, "not_found"),
    ],
)
def test_the_overall_answer_is_that_of_the_exit_status(
    more: list[str], status: int, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["preflight", str(written(tmp_path)), "--kafka", "3.9.1", "--no-changes", *more]
    assert main([*call, "--format", "json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == answer
    assert told["decided_by"] == (["acks_1"] if "acks_1" in more else list(PROMISED))
    assert {p["answer"] for p in told["profiles"]} == {answer}
