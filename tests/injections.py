"""What an enemy may write into evidence, the test against it, and that test without its defence.

Each defence in turn is taken out of a copy of the package, and its test has to fail there: a test
that stays green without the defence shows nothing. As a command:

    python -m tests.injections [WORDS]      only those whose line holds these words
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 60
UNTRUSTED = "tests/test_untrusted_input.py::"
OPENING = "tests/evidence/test_opening.py::"
SHIPPING = "tests/evidence/shipping/"
HOSTILE_DIGESTS = SHIPPING + "test_hostile_digests.py::"
HOSTILE_ENVELOPES = SHIPPING + "test_hostile_envelopes.py::"
BOUNDS = "tests/spark/test_line_bounds.py::"
DAMAGED = "tests/spark/test_damaged_tables.py::"
WEBHOOK = "tests/spark/test_webhook.py::"
ARCHIVES = "evidence/collecting/archives.py"
SAFE_TEXT = "reports/safe_text.py"
SHOWS_ITSELF = "    if text.isascii() and text.isprintable():\n        return text\n"
AS_IT_IS = "    return text\n"
JSON_ERRORS = "(ValueError, RecursionError)"


@dataclass(frozen=True)
class Defence:
    """What comes in, the lines of the package that keep it out (file, text, text without), and the
    test."""

    against: str
    file: str
    text: str
    without: str
    test: str


def steering(against: str, test: str) -> Defence:
    """What the last look at every text keeps out."""
    return Defence(against, SAFE_TEXT, SHOWS_ITSELF, AS_IT_IS, UNTRUSTED + test)


DEFENCES = [
    steering("topics, cluster ids, paths in events that steer a terminal or forge a line",
             "test_names_from_evidence_steer_no_terminal_and_forge_no_line"),
    steering("client ids, errors, keys that steer a terminal",
             "test_what_clients_wrote_steers_no_terminal"),
    steering("file names that steer a terminal",
             "test_names_of_files_steer_no_terminal_whatever_bytes_they_are"),
    Defence("controls in JSON", SAFE_TEXT, "    return _NOT_PRINTED.sub(", "    return text or (",
            UNTRUSTED + "test_a_json_answer_means_what_it_would_without_its_escapes"),
    Defence("HTML in names and log lines", SAFE_TEXT,
            "    return html.escape(plain(str(text)), quote=True)", "    return str(text)",
            "tests/reports/test_page.py::test_hostile_names_and_lines_are_text"),
    Defence("quotes and backslashes of names in SQL", "spark/delta_schemas.py",
            'text.replace("\\\\", "\\\\\\\\").replace("\'", "\\\\\'")', "text",
            "tests/spark/test_log_files.py::test_a_text_in_sql_is_that_text_and_no_more"),
    Defence("archive members named ../up or /etc", ARCHIVES, 'if p not in ("/", "..", ".")]', "]",
            OPENING + "test_no_member_leaves_the_folder"),
    Defence("links in archives", ARCHIVES, "if member.issym() or member.islnk():", "if False:",
            OPENING + "test_links_are_not_followed_and_said"),
    Defence("archives that unpack to more than their limit", ARCHIVES,
            "if self.written > self.limits.total_bytes:", "if False:",
            OPENING + "test_bombs_are_refused"),
    Defence("archives of too many files", ARCHIVES, "if self.files > self.limits.files:",
            "if False:", OPENING + "test_bombs_are_refused"),
    Defence("archives within archives within archives", ARCHIVES,
            "if depth >= self.limits.depth:", "if False:", OPENING + "test_bombs_are_refused"),
    Defence("archives of members that hold nothing", ARCHIVES,
            "if self.members > self.limits.members:", "if False:",
            UNTRUSTED + "test_members_that_hold_nothing_are_counted_too"),
    Defence("tar headers of gigabytes", ARCHIVES,
            "if found.type in _EXTENSIONS and found.size > _LARGEST_HEADER:", "if False:",
            UNTRUSTED + "test_a_tar_header_that_unpacks_to_gigabytes_is_refused_unread"),
    Defence("links in log directories that lead out", "evidence/opening.py",
            "    mode = path.lstat().st_mode\n", "    mode = path.stat().st_mode\n",
            UNTRUSTED + "test_a_folder_whose_links_lead_out_gives_nothing_from_there"),
    Defence("a digest's file names that lead out", "evidence/log_directories/digest_reader.py",
            ' or "/" in name or name.startswith(".")', "",
            UNTRUSTED + "test_a_digest_writes_no_file_larger_than_what_it_holds"),
    Defence("a digest's pieces a terabyte apart", "evidence/log_directories/digest_reader.py",
            'if stream.tell() != line["at"]:', "if False:",
            UNTRUSTED + "test_a_digest_writes_no_file_larger_than_what_it_holds"),
    Defence("shipped names of hosts and files that lead elsewhere", "evidence/shipping/spool.py",
            '_SAFE.sub("_", text.strip())[:120]', "text.strip()",
            "tests/evidence/shipping/test_spool.py::test_names_lead_nowhere_else"),
    Defence("fields of other types in lines of a digest",
            "evidence/log_directories/digest_lines.py", "return refusal(line) or known_part(line)",
            "return line", HOSTILE_DIGESTS + "test_the_live_source_goes_on_whatever_one_line_says"),
    Defence("pieces of a shipped metadata log a terabyte apart",
            "evidence/log_directories/digest_lines.py", "        if came < 0:", "        if False:",
            HOSTILE_DIGESTS + "test_a_terabyte_is_no_file_of_a_metadata_log"),
    Defence("halves of characters and NUL in shipped lines", "evidence/collecting/envelopes.py",
            "_NO_TEXT.sub(_IN_ITS_PLACE, text).splitlines()", "text.splitlines()",
            SHIPPING + "test_envelopes.py::"
            "test_no_half_of_a_character_and_no_zero_leaves_an_envelope"),
    Defence("envelopes within envelopes within envelopes", "evidence/collecting/envelopes.py",
            "range(MOST_WITHIN)", "range(10**9)",
            HOSTILE_ENVELOPES + "test_one_object_within_another_is_opened"),
    Defence("places in a file that no file reaches", "evidence/collecting/envelopes.py",
            "[0-9]{1,18}", "[0-9]+",
            HOSTILE_ENVELOPES + "test_a_line_stands_no_further_in_a_file_than_a_file_goes"),
    Defence("shipped lines that look like another kind of file",
            "evidence/collecting/collection.py", "    elif told.laid_out:", "    elif False:",
            SHIPPING + "test_hostile_lines.py::"
            "test_lines_that_are_something_else_freeze_nothing"),
    Defence("shipped paths with a folder where a file must lie", "evidence/shipping/spool.py",
            'return f"{name}{SIGN}" if', "return name if",
            SHIPPING + "test_hostile_lines.py::"
            "test_no_name_of_a_log_a_host_or_a_cluster_stands_in_anothers_way"),
    Defence("a webhook's redirects to other addresses", "spark/webhook.py",
            "build_opener(self, _NoRedirects)", "build_opener(self)",
            WEBHOOK + "test_only_two_hundreds_are_a_delivery"),
    Defence("a webhook that drips", "spark/webhook.py", "thread.join(seconds)", "thread.join()",
            WEBHOOK + "test_a_server_that_drips_is_given_up"),
    Defence("connections to the metrics that ask nothing", "spark/metrics.py",
            "        for each in oldest:", "        for each in []:",
            WEBHOOK + "test_who_connects_and_asks_nothing_keeps_no_other_from_asking"),
    Defence("small files of lines of nearly nothing", "evidence/text_lines.py",
            "if lines <= MANY_LINES or size >= SHORT_LINE * lines:", "if True:",
            "tests/evidence/test_short_lines.py::test_in_an_archive_as_well"),
    Defence("zeros in a broker's log", "evidence/opening.py",
            "text.count(0) > len(text) // _TEXT_FOR_A_ZERO", "0 in text",
            UNTRUSTED + "test_zeros_in_a_log_cost_no_other_line"),
    Defence("leader epochs of a copy that counts as unread", "evidence/joining/partition_join.py",
            "    if unsure:\n", "    if False:\n",
            "tests/test_damage.py::test_no_record_that_counts_as_unread_hides_an_acknowledgements_epoch"),
    Defence("lines of events that no machine can hold", "spark/line_bounds.py",
            "- begin > LONGEST_LINE:", "- begin > 1 << 60:",
            BOUNDS + "test_a_line_that_no_machine_can_hold_is_refused_unread"),
    Defence("packed files of events that unpack to much more", "spark/line_bounds.py",
            "self.size > self.most_bytes:", "False:",
            BOUNDS + "test_a_packed_file_that_unpacks_to_much_more_is_refused_early"),
    Defence("millions of lines that are no events", "spark/refused_rows.py",
            "if self.counts[origin] <= TOLD_ONE_BY_ONE:", "if True:",
            "tests/spark/test_refused_rows.py::"
            "test_very_many_lines_of_one_origin_are_told_as_one"),
    Defence("partitions with more to read than anybody waits for", "protocol/histories/ask.py",
            "and self.steps > MOST_READ_OF_ALL", "and False",
            "tests/protocol/histories/test_refinement.py::"
            "test_beyond_the_bound_of_all_steps_a_partition_is_given_up_and_said"),
    Defence("commits to the tables that somebody else has made", "spark/other_writers.py",
            "or _is_own(table.name, told, actions)", "or True",
            "tests/spark/test_other_writers.py::"
            "test_transactions_of_others_are_not_ours"),
    Defence("bytes of small tables that have changed", "spark/checksums.py",
            "if wanted[place : place + SUM_BYTES] != found:", "if False:",
            DAMAGED + "test_no_byte_of_a_small_table_changes_unnoticed"),
    Defence("bytes of the tables that have changed", "spark/log_files.py",
            "page_checksum_verification=True", "page_checksum_verification=False",
            DAMAGED + "test_no_byte_of_a_small_table_changes_unnoticed[None]"),
    Defence("files of the tables that are gone or cut", "spark/log_files.py",
            'if size != add["size_bytes"]:', "if False:",
            DAMAGED + "test_a_file_that_is_gone_or_of_another_length_is_noticed_at_the_start"),
    Defence("damaged Parquet files of events", "evidence/event_dumps.py",
            "page_checksum_verification=True", "page_checksum_verification=False",
            DAMAGED + "test_a_parquet_file_of_events_gives_its_events_or_is_refused_whole"),
    Defence("deep JSON and endless numbers in events", "protocol/ground/wire.py", JSON_ERRORS,
            "KeyError", UNTRUSTED + "test_no_value_of_an_event_dump_ends_the_process"),
    Defence("deep JSON and endless numbers in clients' logs", "evidence/clients/client_logs.py",
            JSON_ERRORS, "KeyError",
            UNTRUSTED + "test_no_value_of_a_clients_log_ends_the_process"),
    Defence("deep JSON and endless numbers in log lines", "evidence/broker_logs/json_lines.py",
            JSON_ERRORS, "KeyError",
            UNTRUSTED + "test_no_value_of_a_json_log_line_ends_the_process"),
    Defence("deep JSON and endless numbers in small files",
            "evidence/log_directories/small_files.py", JSON_ERRORS, "KeyError",
            UNTRUSTED + "test_no_value_of_a_small_file_or_a_tools_output_ends_the_process"),
]  # fmt: skip


def without(defence: Defence, folder: Path) -> None:
    """Puts a copy of the package without a defence into a folder, beside links to the rest."""
    for entry in ROOT.iterdir():
        if entry.name != "replication":
            (folder / entry.name).symlink_to(entry)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "replication", folder / "replication", ignore=ignored)
    path = folder / "replication" / defence.file
    text = path.read_text(encoding="utf-8")
    assert defence.text in text, f"{defence.file} has no {defence.text!r}"
    path.write_text(text.replace(defence.text, defence.without), encoding="utf-8")


def missing() -> list[str]:
    """The defences of which the lines or the test have got another name."""
    found = []
    for defence in DEFENCES:
        path, _, test = defence.test.partition("::")
        has_lines = defence.text in (ROOT / "replication" / defence.file).read_text("utf-8")
        has_test = f"def {test.partition('[')[0]}(" in (ROOT / path).read_text("utf-8")
        if not (has_lines and has_test):
            found.append(f"{defence.against}: {defence.file}, {defence.test}")
    return found


def failed(defence: Defence) -> bool:
    """Whether the test fails, or does not end, without its defence. Raises AssertionError where it
    cannot be run."""
    with tempfile.TemporaryDirectory() as name:
        without(defence, Path(name))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider",
                   defence.test]  # fmt: skip
        done = subprocess.run(command, cwd=name, env={**os.environ, "PYTHONPATH": name},
                              capture_output=True, text=True, check=False,
                              preexec_fn=bounded)  # fmt: skip
    assert done.returncode in (0, 1, -signal.SIGXCPU), done.stdout[-2000:] + done.stderr[-2000:]
    return done.returncode != 0


def bounded() -> None:
    """Ends this process once it has used so much of a processor as no test needs."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 10))


def main(words: list[str]) -> int:
    """The command; exit status 1 where a test is green without its defence, or does not run."""
    count: Counter[str] = Counter()
    for defence in DEFENCES:
        line = f"{defence.against}: {defence.test}"
        if all(word in line for word in words):
            try:
                found = "red" if failed(defence) else "GREEN"
            except AssertionError as error:
                found, line = "NOT RUN", f"{line}: {error}"
            count[found] += 1
            print(f"{found} without {defence.file}: {line}", flush=True)
    print(f"{count['red']} of {count.total()} tests are red without their defence")
    return int(count["red"] != count.total())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
