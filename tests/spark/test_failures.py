"""No job ends with a status that stands for a finding where nothing was found."""

import errno
import io
import os
import re
import signal
import socket
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from replication.paths import project_root
from replication.spark.event_files import SourceError
from replication.spark.failures import OUTSIDE_NUMBERS, ended_by, exit_status, failed
from replication.spark.kafka_source import KafkaSource
from replication.spark.log_files import DamagedError
from replication.spark.tables import TablesError


def of_deltalake(words: str, number: int) -> str:
    """An error of the system as deltalake 1.6.6 words it."""
    arrow = "\x1b[31m\u21b3\x1b[0m"
    told = f"{arrow} Unable to copy data to file\n           {arrow} {words} (os error {number})"
    return f"Generic LocalFileSystem error\n          {told}\n"


JOBS = sorted((project_root() / "jobs").glob("*.py"))


def test_a_jobs_own_status_is_kept() -> None:
    assert exit_status(lambda argv: len(argv), ["jobs/replay.py", "a", "b", "c"]) == 3


def test_a_folder_that_cannot_be_used_is_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()

    def main(argv: list[str]) -> int:
        (file / argv[0]).mkdir()
        return 0

    assert exit_status(main, ["jobs/replay.py", "tables"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("replay.py: ")
    assert str(file / "tables") in said


@pytest.mark.parametrize(
    "away", ["Connection refused", "Connection reset by peer", "Read-only file system"]
)
def test_a_store_that_does_not_answer_may_come_back(
    away: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that Kubernetes or a scheduler does not repeat with status 2 is repeated with 5."""

    def main(argv: list[str]) -> int:
        raise SourceError(f"s3a://bucket/tables: ConnectException: {away}")

    assert exit_status(main, ["jobs/replay.py"]) == 5
    assert capsys.readouterr().err == (
        f"replay.py: s3a://bucket/tables: ConnectException: {away}; start it again when that is "
        "mended\n"
    )


@pytest.mark.parametrize(
    "refusal",
    [
        TablesError("the table /data/No space left on device: damaged"),
        TablesError("/data/x: Connection refused"),
        SourceError("source folder /mnt/Read-only file system does not exist"),
        SourceError("--source /mnt/it timed out: is a file"),
    ],
)
@pytest.mark.parametrize(("cause", "status"), [(None, 2), (errno.ENOENT, 2), (errno.ENOSPC, 5)])
def test_a_refusal_passes_by_its_cause_and_not_by_the_names_of_its_folders(
    refusal: Exception, cause: int | None, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal.__cause__ = None if cause is None else OSError(cause, os.strerror(cause), "timed out")
    assert ended_by(refusal, "replay.py") == status
    assert ended_by(NotADirectoryError(errno.ENOTDIR, "Not a directory", str(refusal)), "x") == 2
    assert capsys.readouterr().err.count("start it again") == (status == 5)


def test_a_table_that_is_gone_or_damaged_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may go at any moment of a look, and not only before one."""
    assert ended_by(DamagedError(tmp_path / "verdicts", "is damaged"), "check_quality.py") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"check_quality.py: {tmp_path}/verdicts is damaged: restore the table's")
    assert said.count("\n") == 1


@pytest.mark.parametrize("then", [None, KeyError("reentrant"), OSError(errno.EPIPE, "gone")])
def test_ctrl_c_is_one_line_whatever_fails_on_the_way_out(
    then: Exception | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JVM has got it, too: the job's last calls meet one that is ending. Tests that are
    started in the background of a shell ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def main(argv: list[str]) -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            return 0
        finally:
            if then is not None:
                raise then

    try:
        assert exit_status(main, ["jobs/replay.py"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "replay.py: interrupted before it had finished\n"


def test_a_defect_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    def main(argv: list[str]) -> int:
        raise KeyError("nobody expected it")

    assert exit_status(main, ["jobs/stream.py"]) == 4
    assert "stream.py: a defect of this tool" in capsys.readouterr().err


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.name)
def test_every_job_ends_so(job: Path) -> None:
    assert "sys.exit(exit_status(main, sys.argv))" in job.read_text()


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call "
            "last):\n  File x\nreplication.spark.fence.TakenOverError: run 'b' (process 7 on h) "
            "has taken over",
            2,
            "job.py: run 'b' (process 7 on h) has taken over",
        ),
        (
            "[STREAM_FAILED] Query terminated\nreplication.spark.spark_commit.CameSecondError: "
            "another job has made version 5 of T meanwhile",
            5,
            "job.py: CameSecondError: another job has made version 5 of T meanwhile; start",
        ),
        (
            "[STREAM_FAILED] Query terminated\norg.apache.spark.SparkException: Job aborted\n"
            "Caused by: java.io.IOException: No space left on device",
            5,
            "job.py: IOException: No space left on device; start it again when that is mended",
        ),
        (
            "[STREAM_FAILED] Query [id = c1f9, runId = 9bb9] terminated with exception: "
            "java.io.IOException: No space left on device SQLSTATE: XXKST",
            5,
            "job.py: IOException: No space left on device; start it again when that is mended; "
            "free: ",
        ),
        (
            "[STREAM_FAILED] Query terminated\nModuleNotFoundError: No module named 'pandas'",
            4,
            "job.py: a defect of this tool: ModuleNotFoundError: No module named 'pandas'",
        ),
        (
            "x\nreplication.protocol.folding.codec.UnknownFormat: the state is of format 1",
            2,
            "start anew with --new-run NAME",
        ),
        (
            "x\norg.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/fold/offsets/9",
            2,
            "offsets/9; restore it, or delete the folder of that query",
        ),
        (
            "[STREAM_FAILED] Query terminated\n: java.lang.IllegalArgumentException: Wrong "
            "basePath file:/b/ingest/admitted for the root path: file:/a/ingest/admitted/0.json",
            2,
            "file:/a/ingest/admitted/0.json; --checkpoint-dir lay elsewhere when it was made: move",
        ),
        (
            "An error occurred while calling o9.collect.\norg.apache.spark.SparkException: Job\n"
            "Caused by: org.apache.spark.SparkFileNotFoundException: [FAILED_READ_FILE."
            "FILE_NOT_EXIST] Error while reading file file:/t/verdicts/a.parquet",
            2,
            "file:/t/verdicts/a.parquet; a file of the tables is missing or damaged: restore",
        ),
        (
            "x\n: java.lang.IllegalStateException: [DELTA_TRUNCATED_TRANSACTION_LOG] /t/verdicts/"
            "_delta_log/3.json: Unable to reconstruct state at version 4",
            2,
            "restore the table's folder, or fold the events anew into new tables",
        ),
        (
            "x\norg.apache.kafka.common.KafkaException: Failed to construct kafka consumer\n"
            "Caused by: java.lang.IllegalArgumentException: JAAS config entry not terminated by "
            "semi-colon",
            2,
            "semi-colon; a setting of --kafka-options that Kafka's client does not take",
        ),
        (
            "x\norg.apache.kafka.common.KafkaException: Failed to construct kafka consumer\n"
            "Caused by: org.apache.kafka.common.config.ConfigException: Invalid value x for "
            "configuration security.protocol",
            2,
            "security.protocol: a setting of --kafka-options that Kafka's client does not take",
        ),
        (
            "x\nreplication.spark.kafka_source.KafkaAwayError: no broker accepts a connection",
            5,
            "job.py: no broker accepts a connection",
        ),
        (
            "x\nValueError: '[..] org.apache.kafka.common.errors.TimeoutException' is none",
            4,
            "a defect of this tool: ValueError",
        ),
        (
            "An error occurred while calling o50.save.\n"
            ": io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] A "
            "transaction met another",
            5,
            "A transaction met another; start it again when that is mended",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call "
            f"last):\n  File x\nOSError: {of_deltalake('No space left on device', 28)}",
            5,
            "job.py: OSError: Generic LocalFileSystem error: Unable to copy data to file: No space "
            "left on device (os error 28); start it again when that is mended; free: ",
        ),
    ],
)
def test_the_last_line_names_the_cause_and_the_status_its_kind(
    text: str, status: int, told: str
) -> None:
    out = io.StringIO()
    assert failed("job.py", RuntimeError(text), out) == status
    assert told in out.getvalue().splitlines()[-1]


def test_of_a_full_disk_the_room_in_each_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(argv: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    given = ["jobs/stream.py", "--tables=/proc/tables", "--checkpoint-dir", str(tmp_path / "ck"),
             "--out", "hdfs://namenode/out", "--source", str(tmp_path / "events")]  # fmt: skip
    monkeypatch.setattr("sys.argv", given)
    assert exit_status(full, given) == 5
    room = capsys.readouterr().err.partition("; free: ")[2]
    assert room.startswith("0 MB in /proc/tables (--tables), ")
    assert re.findall(r" MB in (.*?) \(", room) == [
        "/proc/tables", str(tmp_path / "ck"), str(tmp_path)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [OSError, DeltaError])
@pytest.mark.parametrize("number", OUTSIDE_NUMBERS)
def test_an_error_of_the_system_is_one_line_whoever_meets_it(
    kind: type[Exception], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python, or deltalake, which knows no numbers and writes in colours on several lines."""

    def main(argv: list[str]) -> int:
        raise kind(of_deltalake(os.strerror(number), number))

    assert exit_status(main, ["jobs/replay.py"]) == 5
    said = capsys.readouterr().err
    assert said.startswith("replay.py: Generic LocalFileSystem error: Unable to copy data to file")
    assert (said.count("\n"), "\x1b" in said, "start it again" in said) == (1, False, True)
    assert ("; free: " in said) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_full_disk_is_told_from_a_folder_that_cannot_be_used() -> None:
    def full(argv: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert exit_status(full, ["jobs/stream.py"]) == 5


@pytest.mark.parametrize("flag", ["--checkpoint-dir", "--tables"])
def test_of_a_folder_that_can_only_be_read_the_flag_is_told(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(argv: list[str]) -> int:
        raise OSError(errno.EROFS, "Read-only file system", "../ro/ck/ingest")

    given = ["jobs/stream.py", "--source", "in", flag, "../ro/ck"]
    monkeypatch.setattr("sys.argv", given)
    assert exit_status(main, given) == 5
    assert capsys.readouterr().err == (
        f"stream.py: [Errno 30] Read-only file system: '../ro/ck/ingest' ({flag}); start it again "
        "when that is mended\n"
    )


@pytest.mark.parametrize(
    ("servers", "status", "words"),
    [
        ("{nobody}", 5, "no broker accepts a connection ({nobody}: Connection refused): see to it"),
        ("{nobody},PLAINTEXT://{somebody}", 0, ""),
        ("kafka", 2, "--bootstrap-servers kafka: kafka is not HOST:PORT"),
        ("kafka:9092000", 2, "kafka:9092000 is not HOST:PORT"),
        ("{nobody},", 2, "nothing is not HOST:PORT"),
        ("no.such.host.invalid:9092", 5, "no.such.host.invalid:9092: "),
    ],
)
def test_an_address_that_nobody_answers_at_is_named(
    servers: str, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as silent, socket.socket() as listening:
        silent.bind(("127.0.0.1", 0))
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        names = {
            name: f"127.0.0.1:{each.getsockname()[1]}"
            for name, each in (("nobody", silent), ("somebody", listening))
        }

        def main(argv: list[str]) -> int:
            KafkaSource(servers.format(**names), "events").check_address()
            return 0

        assert exit_status(main, ["jobs/stream.py"]) == status
    said = capsys.readouterr().err
    assert words.format(**names) in said
    assert ("--bootstrap-servers" in said) == (status > 0)
