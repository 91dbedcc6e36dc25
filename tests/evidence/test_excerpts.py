"""One to ten lines as people paste them: each is taken for what it says by itself."""

from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.evidence.importer import import_evidence
from replication.reports.line_words import sentence

REFUSED = (
    "[2018-01-04 09:01:11,190] FATAL [ReplicaFetcher replicaId=5, leaderId=4, fetcherId=0] Exiting "
    "because log truncation is not allowed for partition ledger-7, current leader's latest offset "
    "120 is less than replica's latest offset 155 (kafka.server.ReplicaFetcherThread)"
)
MISMATCH = (
    "[2021-01-04 09:01:11,100] ERROR [ReplicaFetcher replicaId=5, leaderId=4, fetcherId=0] "
    "Unexpected error occurred while processing data for partition ledger-7 at offset 77 "
    "(kafka.server.ReplicaFetcherThread)\n"
    "java.lang.IllegalStateException: Offset mismatch for partition ledger-7: fetched offset = 77, "
    "log end offset = 79.\n\tat kafka.server.ReplicaFetcherThread.processPartitionData(..)"
)


def observed(text: str, folder: Path, name: str = "paste.txt") -> list[dict[str, Any]]:
    (folder / name).write_text(text)
    return import_evidence([folder]).observations


FORMS = {
    "as it is": REFUSED,
    "without its time": REFUSED.split("] FATAL ", 1)[1],
    "quoted": f"He wrote:\n\n> {REFUSED}\n\nand nothing else",
    "in a list": f"  - {REFUSED}",
    "wrapped by mail": REFUSED.replace(" current leader's", "\ncurrent leader's"),
    "numbered": f"1041: {REFUSED}",
    "without its logger": REFUSED.rpartition(" (")[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_line_says_the_same_in_whatever_form_it_was_pasted(form: str, tmp_path: Path) -> None:
    (row,) = observed(FORMS[form], tmp_path)
    assert (row["kind"], row["broker"], row["topic"]) == ("truncation_refused", 5, "ledger")
    told = sentence(row)
    assert "offsets 120..154 (35 offsets)" in told
    assert "broker 4" in told


def test_the_message_of_an_exception_is_of_the_line_before_it(tmp_path: Path) -> None:
    rows = observed(MISMATCH, tmp_path)
    assert [(r["kind"], r["broker"], r["fields"]) for r in rows] == [
        ("fetch_offset_mismatch", 5, {"fetch_offset": 77, "log_end_offset": 79})
    ]


def test_what_was_cut_is_told_where_the_log_end_is(tmp_path: Path) -> None:
    text = (
        "[2019-03-11 08:14:02,170] INFO Completed load of log orders-3 with 2 log segments, log "
        "start offset 0 and log end offset 2075 in 5 ms (kafka.log.Log)\n"
        "[2019-03-11 08:14:02,177] INFO Truncating log orders-3 to offset 2051. (kafka.log.Log)\n"
    )
    told = {r["kind"]: sentence(r) for r in observed(text, tmp_path)}
    assert told["truncated"] == (
        "some broker cut offsets 2051..2074 (24 offsets) from its log, and whatever came behind"
    )


def test_the_broker_is_told_by_the_files_name_where_nothing_else_speaks(tmp_path: Path) -> None:
    line = "[2019-03-11 08:14:02,177] INFO Truncating log t-3 to offset 9. (kafka.log.Log)\n"
    (row,) = observed(line, tmp_path, "broker-3.log")
    assert row["broker"] == 3


def test_text_without_a_line_of_kafkas_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "story.txt").write_text("Our Kafka broker lost its leader, partition and offset.\n")
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "no evidence of a Kafka cluster" in capsys.readouterr().err
    (tmp_path / "story.txt").write_text(REFUSED)
    assert main(["diagnose", str(tmp_path)]) == 3
    assert "copy it before anybody deletes it" in capsys.readouterr().out


THREE = "".join(
    f"[2022-05-05 10:00:0{n},100] INFO [Partition t-0 broker={n}] Log loaded for partition t-0 "
    f"with initial high watermark 0 (kafka.cluster.Partition)\n"
    for n in (1, 2, 3)
)
ANNOUNCED = (
    "[2022-05-05 11:00:00,100] INFO [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] "
    "Truncating partition t-0 to local high watermark 7 (kafka.server.ReplicaFetcherThread)\n"
)
CUT = (
    "[2022-05-05 11:00:00,101] INFO [Log partition=t-0, dir=/d] Truncating to offset 7 "
    "(kafka.log.Log)\n"
)
CASES = {
    "announced by the fetcher just before": (ANNOUNCED + CUT, 2),
    "announced by nobody": (CUT, None),
    "announced by two at once": (ANNOUNCED + ANNOUNCED.replace("Id=2", "Id=3") + CUT, None),
    "announced long before": (ANNOUNCED.replace("11:00:00", "10:59:00") + CUT, None),
    "for another offset": (ANNOUNCED.replace("mark 7", "mark 8") + CUT, None),
    "a directory known by another cut, which others may have too": (
        ANNOUNCED + CUT + CUT.replace("11:00:00", "12:00:00").replace("offset 7", "offset 5"),
        None,
    ),
    "a directory that two have": (
        ANNOUNCED
        + CUT
        + (ANNOUNCED.replace("Id=2", "Id=3") + CUT).replace("11:", "12:")
        + CUT.replace("11:", "13:").replace("offset 7", "offset 5"),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_in_a_file_of_several_brokers_a_cut_is_only_whose_it_must_be(
    case: str, tmp_path: Path
) -> None:
    text, broker = CASES[case]
    rows = observed(THREE + text, tmp_path, "server.log")
    cut = [r for r in rows if r["kind"] == "truncated"][-1]
    assert cut["broker"] == broker
