"""Which of Kafka's own tools printed a file: each has a reader of its own beside this one."""

from pathlib import Path

from replication.evidence.text_lines import text_lines
from replication.evidence.tools.dump_log import BATCH_LINE, DUMPING, LONGEST_DUMP_LINE, STARTING
from replication.evidence.tools.metadata_dump import is_metadata_dump
from replication.evidence.tools.metadata_quorum import REPLICATION_HEADER
from replication.evidence.unreadable import Unreadable

DUMP_LOG, METADATA_DUMP = "dump_log", "metadata_dump"
LOG_DIRS, METADATA_QUORUM = "log_dirs", "metadata_quorum"
_LINES_TO_KNOW_A_FILE_BY = 40


def tool_output_kind(path: Path) -> str | None:
    """Which tool printed the file, by its first lines; None if none of these did.

    "dump_log" (read_dump_log), "metadata_dump" (metadata_dump.read_metadata_dump), "log_dirs"
    (read_log_dirs), "metadata_quorum" (read_metadata_quorum).
    """
    kind = _kind(path)
    return METADATA_DUMP if kind == DUMP_LOG and is_metadata_dump(path) else kind


def _kind(path: Path) -> str | None:
    for number, line in text_lines(path, LONGEST_DUMP_LINE):
        if isinstance(line, Unreadable) or number > _LINES_TO_KNOW_A_FILE_BY:
            return None
        text = line.strip()
        if DUMPING.match(text) and text.endswith((".log", ".checkpoint")):
            return DUMP_LOG
        if BATCH_LINE.match(text) or STARTING.match(text):
            return DUMP_LOG
        if text.startswith(("LeaderId:", "LeaderEpoch:")) or REPLICATION_HEADER.match(text):
            return METADATA_QUORUM
        if text.startswith(("Querying brokers for log dir", "Received log directory information")):
            return LOG_DIRS
        if '"logDirs"' in text or (number < 5 and text.startswith('{"version":1,"brokers":[')):
            return LOG_DIRS
    return None
