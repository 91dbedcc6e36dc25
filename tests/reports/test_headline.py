"""The first sentence: never more than is shown, and what would tell the rest."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.protocol.histories.assumptions import ASSUMPTIONS, RECORDS_AS_SEEN
from replication.reports import words
from replication.reports.answer import undecided_beside_the_table
from replication.reports.explained_words import explained
from replication.reports.headline import (
    MOST_WORDS,
    headline,
    headline_more,
    how_to_get,
    what_settles,
    why_open,
)
from replication.reports.history_words import two_histories_text
from replication.reports.inventory_words import span_of
from replication.reports.line_words import sentence
from replication.reports.loss_words import contract_words, loss_text, name_clients, why, why_of
from replication.reports.vocabulary import CAUSE_WORDS, TIER_WORDS
from replication.reports.without_a_trace import NOT_KNOWN, WHAT_TELLS

INCIDENTS = Path(__file__).parents[1] / "incidents"
PLACE = {"cluster_id": "c", "topic": "t", "topic_id": None, "partition": 0}


def verdict(invariant: str, said: str, *, partition: int = 0, missing: bool = False) -> Any:
    return {
        **PLACE, "partition": partition, "invariant": invariant, "verdict": said,
        "not_supplied": missing, "reason": "a reason", "finding_ids": [],
        "settled_by": ["the log directory of broker 2"] if said == "UNKNOWN" else [],
    }  # fmt: skip


def loss(**changes: Any) -> Any:
    return {
        **PLACE, "first_offset": 5, "end_offset": 8, "records": 3, "end_offset_bound": "exact",
        "tier": "acknowledged_by_isr", "status": "lost", "contract": "broken",
        "acknowledged_from": None, "acknowledged_until": None,
        "cause": "unclean_election", "contributing": [], "surviving_copies": [],
        "finding_id": "f", **changes,
    }  # fmt: skip


def detail(**changes: Any) -> Any:
    return {
        **PLACE, "finding_id": "f", "election": None, "allowed_by": [], "copies": [],
        "clients": [], "first_keys": [], "by_client": [], **changes,
    }  # fmt: skip


def answer(*verdicts: Any, losses: tuple[Any, ...] = (), details: tuple[Any, ...] = ()) -> Any:
    held = verdict("committed_records_survive", "HOLDS"), verdict("log_matching", "HOLDS")
    return {
        "partitions": [PLACE], "verdicts": [*(verdicts or held)], "losses": list(losses),
        "divergences": [], "loss_details": list(details), "clusters": [], "findings": [],
    }  # fmt: skip


def test_nothing_lost_only_where_all_that_matters_holds() -> None:
    assert headline(answer()) == "Nothing lost, nothing diverged in 1 partition"


@pytest.mark.parametrize(
    "invariant",
    ["committed_records_survive", "log_matching", "acknowledged_records_survive",
     "consumed_records_survive"],
)  # fmt: skip
def test_what_matters_and_is_unknown_comes_first(invariant: str) -> None:
    made = answer(verdict("committed_records_survive", "HOLDS"), verdict(invariant, "UNKNOWN"))

    assert headline(made).startswith("CANNOT TELL whether anything is lost in 1 of 1 partition")
    assert "a reason" in headline(made)
    (settles,) = what_settles(made)
    assert settles.startswith("the log directory of broker 2 (1 verdict); to get it: copy")


def test_without_an_acknowledgement_log_only_committed_records_are_spoken_of() -> None:
    made = answer(
        verdict("committed_records_survive", "HOLDS"), verdict("log_matching", "HOLDS"),
        verdict("acknowledged_records_survive", "UNKNOWN", missing=True),
    )  # fmt: skip

    assert headline(made).startswith("No committed record lost, nothing diverged")
    assert "acks=1" in headline(made)


@pytest.mark.parametrize(
    ("assigned", "said"),
    [
        ([1, 2, 3], " as far as is seen: nothing of brokers 1, 3 was handed over"),
        ([2], ""),
        (None, " as far as one broker shows: nothing tells which others have replicas"),
        ([*range(9)], " as far as is seen: nothing of brokers 0, 1 and 6 more was handed over"),
    ],
)
def test_nothing_lost_by_the_logs_of_some_brokers_names_the_others(
    assigned: list[int] | None, said: str
) -> None:
    replicas = [{"replica": 2, "spans": [{}]}]
    told = {"assigned_replicas": assigned, "isr": None, "elections": [], "replicas": replicas}
    made = answer() | {"partitions": [PLACE | told], "inventory": {"brokers": [{"broker": 2}]}}
    assert headline(made) == f"Nothing lost, nothing diverged in 1 partition{said}"
    assert len(headline(made).split()) <= MOST_WORDS


def test_a_refused_move_of_leadership_is_no_partition_without_a_leader() -> None:
    row = {"kind": "partition_state_change_failed", "broker": 3, "one_of": []}
    told = {
        state: sentence({**row, "fields": {"from_state": state, "to_state": "OnlinePartition"}})
        for state in ("OnlinePartition", "OfflinePartition")
    }
    assert "the leader stayed as it was" in str(told["OnlinePartition"])
    assert "no broker could be made leader" in str(told["OfflinePartition"])


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        ("broken", "; Kafka had promised to keep them"),
        ("not_promised", "; these settings did not promise to keep them"),
        ("unknown", ""),
    ],
)
def test_promised_is_said_only_by_the_contract(contract: str, said: str) -> None:
    assert headline(answer(losses=(loss(contract=contract),))) == f"3 records lost in t-0{said}"


def test_at_least_where_a_bound_is_open_or_a_partition_undecided() -> None:
    bounded = answer(losses=(loss(tier="committed", end_offset_bound="at_least"),))
    assert headline(bounded).startswith("At least 3 records lost in t-0")
    assert loss_text(bounded)[0].startswith("LOST  at least 3 records: t-0 offsets 5..7")

    open_elsewhere = answer(verdict("log_matching", "UNKNOWN", partition=1), losses=(loss(),))
    assert headline(open_elsewhere).startswith("At least 3 records lost in t-0")
    assert headline(open_elsewhere).endswith("; cannot tell everything of 1 partition")


def test_gone_from_the_leader_is_not_called_lost() -> None:
    made = headline(answer(losses=(loss(status="undetermined"),)))

    assert made.startswith("3 records gone from the leader and perhaps lost in t-0")


def test_what_does_not_fit_into_a_headline_is_on_the_next_line() -> None:
    settled = {**PLACE, "status": "settled"}
    rows = tuple(
        loss(status=status, finding_id=status, contract=contract)
        for status, contract in (
            ("lost", "broken"), ("undetermined", "unknown"), ("recoverable", "not_promised"),
        )
    )  # fmt: skip
    made = answer(verdict("log_matching", "UNKNOWN"), losses=rows)
    made["divergences"] = [settled]
    assert headline(made) == (
        "At least 3 records lost, at least 3 records gone from the leader and perhaps lost, "
        "replicas diverged in 1 place in t-0"
    )
    assert headline_more(made) == [
        "Also at least 3 records gone from the leader but recoverable",
        "3 promised, 3 not promised, 3 perhaps promised",
        "Cannot tell everything of 1 partition",
    ]


def test_the_next_line_of_an_answer_has_the_rest_of_its_headline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = tmp_path / "less"
    shutil.copytree(INCIDENTS / "last_replica_standing__4.1.1__elr_off", less)
    shutil.rmtree(less / "broker-2")
    main(["diagnose", str(less)])
    first, second, *_ = capsys.readouterr().out.split("\n")
    assert len(first.split()) <= MOST_WORDS
    assert first.endswith("; Kafka had promised to keep them.")
    assert second == "Cannot tell everything of 1 partition."
    main(["diagnose", str(less), "--format", "json"])
    answer_of = json.loads(capsys.readouterr().out)
    assert [answer_of["headline"] + ".", *(f"{s}." for s in answer_of["headline_more"])] == [
        first, second,
    ]  # fmt: skip
    main(["diagnose", str(less), "--report", str(tmp_path / "page.html")])
    assert f"<p>{second}</p>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("granted", sorted(ASSUMPTIONS))
@pytest.mark.parametrize("unheard", [False, True])
def test_no_assumption_makes_a_headline_long_or_is_left_out(granted: str, *, unheard: bool) -> None:
    verdicts = [
        {**verdict("committed_records_survive", "HOLDS"), "assuming": [granted]},
        verdict("acknowledged_records_survive", "UNKNOWN", missing=True),
    ]
    made = answer(*verdicts[: 1 + unheard])
    said = [headline(made), *headline_more(made)]
    assert len(said[0].split()) <= MOST_WORDS
    if granted == RECORDS_AS_SEEN:
        # Whoever complains that records vanished reads first that this does not contradict him.
        assert said[0] == f"No loss, no divergence seen in 1 partition; {NOT_KNOWN}"
        assert WHAT_TELLS[1:] in said[1]
        return
    assert ASSUMPTIONS[granted].sentence in " ".join(said)
    assert ("acks=1" in said[0]) == unheard


def test_why_nothing_can_be_told_is_in_the_headline_as_far_as_it_fits() -> None:
    open_one = verdict("log_matching", "UNKNOWN")
    open_one["reason"] = "offset 9: two histories fit the evidence; in one " + "very " * 20 + "long"
    made = answer(open_one)
    assert headline(made).endswith("(t-0: offset 9: two histories fit the evidence)")
    open_one["reason"] = "very " * 20 + "long"
    assert headline(made) == "CANNOT TELL whether anything is lost in 1 of 1 partition"
    assert headline_more(made) == []


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_loss_without_a_trace_is_left_open_and_not_called_undecided(partitions: int) -> None:
    """Of copies alone that agree: what was seen, then what nobody can know, in one sentence."""
    rows = [{**PLACE, "partition": n} for n in range(partitions)]
    replicas = [{"replica": n, "spans": [{}]} for n in (1, 2)]
    told = {"assigned_replicas": [1, 2], "isr": None, "elections": [], "replicas": replicas}
    resting = {**verdict("committed_records_survive", "HOLDS"), "assuming": [RECORDS_AS_SEEN]}
    made = answer(resting) | {"partitions": [row | told for row in rows]}
    said = headline(made)
    whose, where = ("its", "") if partitions == 1 else ("their", " of 1 of 3 partitions")
    seen = f"No loss, no divergence seen in {partitions} partition{'s' * (partitions > 1)}"
    assert said == f"{seen}: {whose} copies agree; {NOT_KNOWN}{where}"
    missing = answer(resting) | {
        "partitions": [rows[0] | told | {"assigned_replicas": [*range(9)]}]
    }
    missing["inventory"] = {"brokers": [{"broker": 1}]}
    assert (headline(missing), headline_more(missing)[0]) == (
        f"No loss, no divergence seen in 1 partition; {NOT_KNOWN}",
        "Nothing of brokers 0, 3 and 5 more was handed over",
    )


@pytest.mark.parametrize("cause", sorted(CAUSE_WORDS))
@pytest.mark.parametrize("tier", sorted(TIER_WORDS))
@pytest.mark.parametrize("contract", ["not_promised", "unknown"])
def test_why_kafka_had_not_promised_is_always_said(cause: str, tier: str, contract: str) -> None:
    allowed_by = [{"setting": "unclean.leader.election.enable", "value": "true"}]
    row = loss(cause=cause, tier=tier, contract=contract)
    for details in ([detail()], [detail(allowed_by=allowed_by)]):
        _, because = re.split(": |, since ", contract_words(row, details), maxsplit=1)
        assert because.endswith(".")
        by_acks = tier == "acknowledged_by_leader"
        assert contract == "unknown" or ("acks=1 promises" in because) is by_acks
        if contract == "not_promised" and details[0]["allowed_by"] and not by_acks:
            assert because.startswith("an unclean election was allowed")


@pytest.mark.parametrize(("records", "them"), [(1, "it"), (3, "them")])
def test_one_record_is_spoken_of_as_one(records: int, them: str) -> None:
    row = loss(records=records, end_offset=5 + records)
    text = "\n".join(loss_text(answer(losses=(row,), details=(detail(),)))[1:])
    assert f"No replica has {them} any more." in text
    assert f"Kafka had promised to keep {them}." in text
    about = text.replace("What prevents it", "")
    assert set(re.findall(r"\b(it|them|they)\b", about)) == {them}


def test_names_and_keys_of_a_single_record_stay_as_they_are() -> None:
    row = loss(records=1, end_offset=6, topic="them", cause="storage_loss")
    election = {"leader": 2, "leader_epoch": 4, "kind": "same_leader", "at": 50}
    sent = [{"client": "them", "acks": "all", "records": 1}]
    details = (detail(topic="them", election=election, by_client=sent, first_keys=["them"]),)
    lines = loss_text(answer(losses=(row,), details=details))
    assert "broker 2 led them-0 without it in leader epoch 4" in "".join(lines)
    assert "  Whose: 1 client (them: 1 with acks=all); the first key: them." in lines


def test_what_could_not_be_read_is_said_beside_the_headline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "e"
    shutil.copytree(INCIDENTS / "unclean_election__4.1.1", evidence)
    log = evidence / "broker-1" / "server.log"
    (log.parent / "server.log.gz").write_bytes(gzip.compress(log.read_bytes())[:-2000])
    log.unlink()
    main(["diagnose", str(evidence), "--topic", "t"])
    out = capsys.readouterr().out
    second = out.splitlines()[1]
    assert second.startswith(f"Not all of the evidence was read: {log}.gz (line ")
    assert second.endswith("Hand over the whole file.")
    # And what is called next is about the same topic.
    assert f"replication-analyzer decide {evidence} --topic t\n" in out


def test_losses_of_one_event_are_one_paragraph() -> None:
    rows = (loss(), loss(first_offset=9, end_offset=10, records=1, finding_id="g"))
    election = {"leader": 2, "leader_epoch": 4, "kind": "unclean", "at": 7, "observed_at": "then"}
    allowed = [{"setting": "unclean.leader.election.enable", "value": "true"}]
    details = (
        detail(election=election, allowed_by=allowed),
        detail(finding_id="g", election=election, allowed_by=allowed),
    )

    text = loss_text(answer(losses=rows, details=details))
    assert text[:3] == [
        "LOST  4 records:",
        "    t-0 offsets 5..7, acknowledged with acks=all",
        "    t-0 offset 9, acknowledged with acks=all",
    ]
    allows = "  What allowed it: unclean.leader.election.enable=true; what prevents it: "
    assert f"{allows}replication-analyzer explain unclean_election" in text
    assert sum(line.startswith("  Why:") for line in text) == 1


def test_clients_and_first_keys_are_named_where_one_acknowledgement_is_meant() -> None:
    class Ack:
        def __init__(self, offset: int, client: str, key: str, ts: int) -> None:
            self.topic, self.partition, self.status, self.acks = "t", 0, "acked", "all"
            self.offset, self.client, self.payload_id, self.ts = offset, client, key, ts

    election = {"leader": 2, "leader_epoch": 4, "kind": "unclean", "at": 50, "observed_at": "then"}
    made = answer(losses=(loss(leader_epoch=3),), details=(detail(election=election),))
    acks = [Ack(5, "p", "k5", 10), Ack(6, "p", "k6", 20), Ack(6, "q", "new", 60),
            Ack(7, "r", "one", 30), Ack(7, "s", "two", 31)]  # fmt: skip

    name_clients(made, acks)

    (found,) = made["loss_details"]
    assert (found["clients"], found["first_keys"]) == (["p"], ["k5", "k6"])
    assert "  Whose: 1 client (p: 2 with acks=all); the first keys: k5, k6." in loss_text(made)

    began = {
        "leader_epoch": 3,
        "observed_at": "1970-01-01T00:00:00.031Z",
    }
    made["partitions"] = [{**made["losses"][0], "elections": [began]}]
    name_clients(made, acks)
    assert found["first_keys"][-1] == "two"


def test_lost_records_are_counted_by_client_and_acks() -> None:
    class Ack:
        topic, partition, status, payload_id, ts = "t", 0, "acked", None, 10

        def __init__(self, offset: int, client: str, acks: str) -> None:
            self.offset, self.client, self.acks = offset, client, acks

    rows = (loss(end_offset=8), loss(first_offset=8, end_offset=20, records=12, finding_id="g"))
    made = answer(losses=rows, details=(detail(), detail(finding_id="g")))
    sent = [Ack(5, "p", "all"), Ack(6, "p", "1"), Ack(8, "p", "all"), Ack(7, "q", "1")]
    name_clients(made, [*sent, *(Ack(9 + n, f"r{n}", "1") for n in range(6))])

    assert made["loss_details"][0]["by_client"] == [
        {"client": "p", "acks": "1", "records": 1},
        {"client": "p", "acks": "all", "records": 1},
        {"client": "q", "acks": "1", "records": 1},
    ]
    [whose] = [line for line in loss_text(made) if line.startswith("  Whose: ")]
    assert whose == (
        "  Whose: 8 clients (p: 1 with acks=1, 2 with acks=all; q: 1 with acks=1; "
        "r0: 1 with acks=1; r1: 1 with acks=1; r2: 1 with acks=1; 3 more clients: 3)."
    )


def test_acknowledgements_are_of_the_cluster_that_they_lie_beside() -> None:
    class Ack:
        def __init__(self, path: str, key: str) -> None:
            self.topic, self.partition, self.status, self.offset = "t", 0, "acked", 5
            self.acks = "1"
            self.path, self.client, self.payload_id, self.ts = path, path, key, 10

    losses = tuple(loss(cluster_id=cluster, finding_id=cluster) for cluster in ("a", "b"))
    details = tuple(detail(finding_id=cluster) for cluster in ("a", "b"))
    made = answer(losses=losses, details=details)

    name_clients(made, [Ack("a/acks", "ka"), Ack("b/acks", "kb")], cluster_of=lambda p: p[0])

    assert [d["first_keys"] for d in made["loss_details"]] == [["ka"], ["kb"]]


def test_every_kind_of_artefact_has_a_way() -> None:
    for artefact in (
        "the log directory of broker 1", "the whole state-change.log of broker 2",
        "an acknowledgement log of the producers", "replication-offset-checkpoint",
        "the controller's history (metadata log or state-change.log)", "--kafka VERSION",
        "the assignment (kafka-topics --describe, metadata log or state-change.log)",
    ):  # fmt: skip
        assert how_to_get(artefact), artefact


@pytest.mark.parametrize(
    ("ahead", "known_by", "said"),
    [
        (0, "its time stamps", "1970-01-01 06:00:00 to 1970-01-01 07:00:00 UTC"),
        (330, "the other evidence", "1970-01-01 00:30:00 to 1970-01-01 01:30:00 UTC (the logs "
         "print UTC+05:30)"),
        (None, "--time-zone", "1970-01-01 06:00:00 to 1970-01-01 07:00:00 UTC"),
        (None, None, "1970-01-01 06:00:00 to 1970-01-01 07:00:00, local time of an unknown "
         "zone (say it with --time-zone)"),
    ],
)  # fmt: skip
def test_the_interval_is_in_utc_or_says_that_it_is_not(
    ahead: int | None, known_by: str | None, said: str
) -> None:
    log = {"first_at": 6 * 3_600_000, "last_at": 7 * 3_600_000, "minutes_ahead_of_utc": ahead}
    assert span_of([{**log, "zone_known_by": known_by}]) == said


def told(row: dict[str, Any], **more: Any) -> list[str]:
    return loss_text(answer(losses=(row,), details=(detail(**more),)))


def test_of_an_unknown_cause_nothing_is_told_as_known() -> None:
    """What it may be is no contribution, and no election is named as if it had taken them."""
    election = {"leader": 2, "leader_epoch": 4, "kind": "unclean", "at": 7, "observed_at": "then"}
    unknown = {"cause": "unknown", "contract": "unknown", "contributing": ["storage_loss"]}
    text = told(loss(**unknown), election=election)

    assert "  Why: the cause is not known." in text
    assert "  It may be that a broker came back with less on its disk than it had held." in text
    assert "  Whether Kafka had promised to keep them is not known, since the cause is not." in text
    known = told(loss(contributing=["storage_loss"]), election=election)
    assert "  Also: a broker came back with less on its disk than it had held." in known
    assert any("(broker 2 took leader epoch 4 at then)" in line for line in known)


def test_a_setting_that_concerns_some_ranges_says_so() -> None:
    rows = (loss(), loss(first_offset=9, end_offset=10, records=1, finding_id="g"))
    acks = [{"setting": "acks", "value": "1"}]
    text = loss_text(
        answer(losses=rows, details=(detail(), detail(finding_id="g", allowed_by=acks)))
    )

    assert any(line.startswith("  What allowed it: acks=1 (some of them); what") for line in text)


@pytest.mark.parametrize("cause", [c for c in CAUSE_WORDS if c != "unknown"])
def test_each_loss_names_the_page_that_tells_what_prevents_it(cause: str) -> None:
    (told,) = [x for x in loss_text(answer(losses=(loss(cause=cause),))) if " prevents it: " in x]
    word = told.rpartition("replication-analyzer explain ")[2]
    assert "prevented by" in (explained(word) or "")


def test_of_a_loss_of_unknown_cause_no_page_is_named() -> None:
    assert not any("prevents" in x for x in loss_text(answer(losses=(loss(cause="unknown"),))))


def test_topics_of_one_name_are_told_apart() -> None:
    held = [verdict("log_matching", "HOLDS") | {"topic_id": life} for life in ("a", "b")]
    other = verdict("log_matching", "HOLDS") | {"topic": "u"}
    text = "\n".join(words._table(answer(*held, other)))

    assert "t-0 (topic id a)" in text
    assert "t-0 (topic id b)" in text
    assert "u-0 " in text


@pytest.mark.parametrize(
    ("lives", "said"),
    [
        (["a"], "1 partition"),
        (["a", "b"], "1 partition, in two lives"),
        (["a", "b", "c"], "1 partition, in three lives"),
    ],
)
def test_lives_of_a_topic_are_counted_apart_from_partitions(lives: list[str], said: str) -> None:
    made = answer(verdict("log_matching", "HOLDS"))
    made["partitions"] = [{**PLACE, "topic_id": life} for life in lives]
    assert headline(made) == f"Nothing lost, nothing diverged in {said}"
    made["partitions"].append({**PLACE, "topic": "u"})
    more = ", 1 of them in several lives" if len(lives) > 1 else ""
    assert headline(made) == f"Nothing lost, nothing diverged in 2 partitions{more}"


@pytest.mark.parametrize(
    ("contract", "kind", "ordered"),
    [
        ("broken", "unclean", True),
        ("not_promised", "unclean", False),
        ("broken", "last_known_leader", False),
        ("broken", "unknown", False),
    ],
)
def test_an_unclean_election_that_no_setting_allows_was_ordered(
    contract: str, kind: str, *, ordered: bool
) -> None:
    election = {"leader": 2, "leader_epoch": 4, "observed_at": None, "kind": kind}
    told = why({"cause": "unclean_election", "contract": contract}, {"election": election})
    assert ("so a command did it" in told) is ordered
    assert told.startswith("an unclean election")


def test_who_came_back_with_less_is_said_for_each_partition() -> None:
    """One election does not head partitions that had none."""
    rows = [loss(cause="storage_loss"), {**loss(cause="storage_loss"), "partition": 1}]
    led = {"leader": 2, "leader_epoch": 3, "kind": "same_leader", "at": 5, "observed_at": None}
    details = [{"election": led}, {"election": {**led, "leader_epoch": 1, "kind": "clean"}}]
    told = why_of(rows, details)
    assert "broker 2 led t-0 without them in leader epoch 3" in told
    assert "broker 2 led t-1 without them in leader epoch 1" in told
    assert "took leader epoch" not in told
    assert "took leader epoch 1" in why_of(rows[1:], details[1:])


def test_an_answer_of_another_time_at_the_same_offset_is_not_counted() -> None:
    class Ack:
        topic, partition, status, acks, payload_id, offset = "t", 0, "acked", "1", None, 5

        def __init__(self, client: str, ts: int) -> None:
            self.client, self.ts = client, ts

    when = {"acknowledged_from": "1970-01-01T00:00:00.010Z",
            "acknowledged_until": "1970-01-01T00:00:00.020Z"}  # fmt: skip
    made = answer(losses=(loss(tier="committed", **when),), details=(detail(),))
    name_clients(made, [Ack("p", 15), Ack("later", 90)])
    assert made["loss_details"][0]["by_client"] == [{"client": "p", "acks": "1", "records": 1}]


def test_rows_that_meet_and_of_which_the_same_is_said_are_one_place() -> None:
    rows = (
        loss(end_offset=6, records=1),
        loss(first_offset=6, end_offset=9, records=3, finding_id="g"),
    )
    told = loss_text(answer(losses=rows, details=(detail(), detail(finding_id="g"))))
    assert told[0].startswith("LOST  4 records: t-0 offsets 5..8, ")


def test_why_strict_alone_ends_with_another_status_is_told() -> None:
    held = verdict("committed_records_survive", "HOLDS"), verdict("log_matching", "HOLDS")
    open_one = verdict("version_conformance", "UNKNOWN")
    assert undecided_beside_the_table(answer(*held, open_one)) == ["version_conformance"]
    for decides in ("VIOLATED", "UNKNOWN"):
        more = verdict("log_matching", decides)
        assert undecided_beside_the_table(answer(*held, open_one, more)) == []


@pytest.mark.parametrize("zone", ["Z", ""])
def test_times_of_the_ledger_are_read_with_a_zone_and_without(zone: str) -> None:
    class Ack:
        topic, partition, status, acks, payload_id, offset = "t", 0, "acked", "1", None, 5

        def __init__(self, client: str, ts: int | None) -> None:
            self.client, self.ts = client, ts

    at = f"1970-01-01T00:00:00.010{zone}"
    when = {"acknowledged_from": at, "acknowledged_until": at}
    for ts, told in ((10, 1), (11, 0), (-60_000, 1), (1 << 60, 1), (None, 1)):
        made = answer(losses=(loss(tier="committed", **when),), details=(detail(),))
        name_clients(made, [Ack("p", ts)])
        assert len(made["loss_details"][0]["by_client"]) == told


def captured(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], leave: str) -> Any:
    """The answer of a kept incident without what is named so, and its page."""
    taken = tmp_path / "incident"
    shutil.copytree(INCIDENTS / name, taken, ignore=shutil.ignore_patterns(leave, "truth.json"))
    main(["diagnose", str(taken), "--format", "json", "--report", str(tmp_path / "page.html")])
    return json.loads(capsys.readouterr().out), (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("name", "leave"),
    [
        ("unclean_election__4.1.1__trace", "disk*"),
        ("newest_leader_epoch_elected__4.3.0", "disk*"),
        ("chaos__4.1.1__seed2", "broker-1"),
        ("chaos__4.1.1__seed2", "acks.jsonl"),
        ("same_epoch_power_loss__1.1.1", "broker-2"),
    ],
)
def test_one_count_of_what_is_undecided_and_no_offset_is_told_both_ways(
    name: str, leave: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, page = captured(name, tmp_path, capsys, leave)
    said = " ".join([made["headline"], *made["headline_more"]])
    told = re.search(r"(?i:cannot tell) .*?(\d+) (?:of \d+ )?partition", said)
    number = made["partitions_undecided"]
    assert (int(told[1]) if told else 0) == number
    assert re.search(rf'id="figure-undecided" class="\w+"><b>{number}</b>', page)
    for v in made["verdicts"]:
        both = v["histories"]
        rows = [x for x in made["losses"] if x["status"] != "recovered"] if both else []
        meet = any(
            x["first_offset"] < both["end_offset"] and both["first_offset"] < x["end_offset"]
            for x in rows
        )
        assert not meet or v["invariant"] == "log_matching" or both["lost_in_both"], v["invariant"]
        if both and both["lost_in_both"]:
            assert "the record is kept" not in v["reason"]
            assert "nothing is lost" not in f"{why_open(v)} {two_histories_text(v)}".lower()


@pytest.mark.parametrize("leave", ["disk*", "broker-1"])
@pytest.mark.parametrize("name", sorted(p.name for p in INCIDENTS.iterdir() if p.is_dir()))
def test_two_histories_are_never_alike_and_deny_no_line(
    name: str, leave: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = captured(name, tmp_path, capsys, leave)
    for both in (v["histories"] for v in made["verdicts"] if v["histories"]):
        sides_of = [[step["words"] for step in both[side]] for side in ("kept", "broken")]
        assert sides_of[0] != sides_of[1] or not any(sides_of)
        # A start that tells a lower end is a line that shows what a disk lost.
        assert not any(
            "no line of its broker shows" in words for side in sides_of for words in side
        )


def test_a_high_watermark_that_fell_is_judged_in_one_reading() -> None:
    fields = {"from_high_watermark": 9, "to_high_watermark": 7}
    row = {"kind": "high_watermark_regressed", "broker": 2, "fields": fields}
    assert sentence(row) == (
        "broker 2's high watermark fell from 9 to 7: if it was a follower then, nothing is wrong; "
        "if it led then, this must not happen"
    )
