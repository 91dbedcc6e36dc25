"""The same incident with evidence withheld or altered: the answer may become UNKNOWN, never wrong.

An operator seldom has everything, clocks differ and folders are renamed. Each such change is
applied to a kept capture and `diagnose` is asked again; the truth stays what it was.
"""

import gzip
import json
import os
import random
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

from tests.dump_text import dump_of
from tests.handed_over import BEFORE_THE_END, OF_DUMPS, SHAPES
from tests.kafka_lab.comparing import Comparison, compare
from tests.kafka_lab.history import TopicPartition
from tests.kafka_lab.truth import PartitionTruth, load_truths

Withhold = Callable[[Path], bool]


def in_disk(path: Path) -> bool:
    """Within a copied log directory, by the laboratory's naming."""
    return any(part.startswith("disk-") for part in path.parts)


def is_broker_log(path: Path) -> bool:
    return not in_disk(path) and ".log" in path.name


def broker_folder(broker: int) -> Withhold:
    return lambda path: path.parts[0] == f"broker-{broker}"


def either(*withheld: Withhold) -> Withhold:
    """What any of these withholds."""
    return lambda path: any(one(path) for one in withheld)


def some_files(remainder: int) -> Withhold:
    """A third of all files, by a checksum of the name: the same ones every time."""
    return lambda path: zlib.crc32(str(path).encode()) % 3 == remainder


# Given a path relative to the evidence folder: is it withheld?
WITHHELD: dict[str, Withhold] = {
    "no_acknowledgements": lambda path: path.name == "acks.jsonl",
    "no_description": lambda path: path.name == "describe.txt",
    "no_metadata_log": lambda path: "__cluster_metadata-0" in path.parts,
    "no_controller": lambda path: path.parts[0].startswith("controller"),
    "no_broker_logs": is_broker_log,
    "no_directories": in_disk,
    "only_final_directories": lambda path: in_disk(path) and "disk-final" not in path.parts,
    "no_final_directories": lambda path: "disk-final" in path.parts,
    "no_checkpoints": lambda path: path.name.endswith("checkpoint") and in_disk(path),
    "no_state_change_log": lambda path: path.name.startswith("state-change.log"),
    "no_server_log": lambda path: path.name.startswith("server.log"),
    "no_broker_1": broker_folder(1),
    "no_broker_2": broker_folder(2),
    "no_broker_3": broker_folder(3),
    "a_third_gone": some_files(0),
    "another_third_gone": some_files(1),
    "disks_and_acknowledgements_only": lambda path: (
        is_broker_log(path) or path.name == "describe.txt" or "__cluster_metadata-0" in path.parts
    ),
}


# Each class of evidence alone, above, and two of them together.
CLASSES = ("no_acknowledgements", "no_broker_logs", "no_directories", "no_metadata_log")
PAIRS = {
    f"{one}+{other}": either(WITHHELD[one], WITHHELD[other])
    for one, other in combinations(CLASSES, 2)
}
WITHHELD |= PAIRS


RANDOM = re.compile(r"random:(\d+)")


def random_subset(seed: int) -> Withhold:
    """A random part of the artefacts: single ones, whole folders of nodes, or kinds of all nodes;
    the same ones every time."""
    chance = random.Random(seed)
    share, by = chance.choice((0.15, 0.3, 0.5)), chance.choice((_artefact, _folder, _kind))
    return lambda path: random.Random(f"{seed} {by(path)}").random() < share


def _artefact(path: Path) -> str:
    """A log with its rotated files, a partition's folder, or one of the small files beside them."""
    if not in_disk(path):
        return f"{path.parent}/{path.name.split('.log')[0]}"
    is_small = not path.name[0].isdigit() or path.name.endswith("checkpoint")
    return str(path) if is_small else str(path.parent)


def _folder(path: Path) -> str:
    """A copied log directory, or all logs of a node."""
    return "/".join(path.parts[:2]) if in_disk(path) else _artefact(path).rpartition("/")[0]


def _kind(path: Path) -> str:
    return "/".join(Path(_artefact(path)).parts[1:]) or path.name


def names_of(chosen: list[str]) -> list[str]:
    """The changes that were asked for: all, or these; of random:N that many subsets, of "shapes"
    every shape in which people hand evidence over."""
    found = []
    for name in chosen or [*WITHHELD, *ALTERED]:
        count = RANDOM.fullmatch(name)
        if name == "shapes":
            found += [*SHAPES, *OF_DUMPS]
        else:
            found += [name] if count is None else [f"random_{n}" for n in range(int(count[1]))]
    return found


def withheld_by(name: str) -> Withhold:
    """What a change withholds: one that alters evidence withholds nothing."""
    seed = name.removeprefix("random_")
    if seed != name:
        return random_subset(int(seed))
    return WITHHELD.get(name, lambda path: False)


STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)
SKEW_MINUTES = {"broker-1": 7, "broker-2": -11, "broker-3": 3, "controller-100": -2}


def skew_clocks(evidence: Path) -> None:
    """Every node's log lines as if its clock had been minutes off."""
    for path in sorted(evidence.rglob("*.log*")):
        relative = path.relative_to(evidence)
        if not is_broker_log(relative):
            continue
        minutes = timedelta(minutes=SKEW_MINUTES.get(relative.parts[0], 0))

        def moved(match: re.Match[str], by: timedelta = minutes) -> str:
            shown = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S") + by
            return f"[{shown:%Y-%m-%d %H:%M:%S},{match[2]}]"

        text = STAMP.sub(moved, path.read_text(errors="surrogateescape"))
        path.unlink()
        path.write_text(text, errors="surrogateescape")


def rename_folders(evidence: Path) -> None:
    """Names of folders say nothing any more: neither which broker nor which copy was later."""
    for number, folder in enumerate(sorted(evidence.iterdir(), reverse=True)):
        if not folder.is_dir():
            continue
        for label, inner in enumerate(sorted(folder.glob("disk-*"), reverse=True)):
            inner.rename(folder / f"c{label}")
        folder.rename(evidence / f"machine{number}")


def touch_everything(evidence: Path) -> None:
    """All files of one age, as after an archive was unpacked without its times."""
    for path in sorted(evidence.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)
            os.utime(path, (time.time(), time.time()))


def rotate_away(evidence: Path) -> None:
    """The older half of every broker log was deleted by rotation."""
    for path in sorted(evidence.rglob("*.log*")):
        if is_broker_log(path.relative_to(evidence)):
            lines = path.read_bytes().splitlines(keepends=True)
            path.unlink()
            path.write_bytes(b"".join(lines[len(lines) // 2 :]))


def zip_logs(evidence: Path) -> None:
    """Broker logs as rotation leaves them."""
    for path in sorted(evidence.rglob("*.log*")):
        if is_broker_log(path.relative_to(evidence)):
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())
            path.unlink()


ALTERED: dict[str, Callable[[Path], None]] = {
    "skewed_clocks": skew_clocks,
    "renamed_folders": rename_folders,
    "one_age": touch_everything,
    "zipped_logs": zip_logs,
    "older_half_of_logs_gone": rotate_away,
}


def directories_to_dumps(evidence: Path) -> None:
    """What kafka-dump-log prints of each node's last directory, and no directory."""
    for node in [path for path in sorted(evidence.iterdir()) if path.is_dir()]:
        disks = sorted(node.glob("disk-*"))
        text = "".join(dump_of(disk) for disk in disks if disk.name.startswith("disk-final"))
        for disk in disks:
            shutil.rmtree(disk)
        if text:
            (node / "dump.txt").write_text(text)


def withheld_copy(evidence: Path, target: Path, withhold: Withhold) -> int:
    """Links the evidence without what is withheld; how many files that left out."""
    left_out = 0
    for path in sorted(evidence.rglob("*")):
        relative = path.relative_to(evidence)
        if not path.is_file():
            continue
        if withhold(relative):
            left_out += 1
            continue
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target / relative)
    return left_out


def judge_changed(directory: Path, names: list[str]) -> list[Comparison]:
    """A kept capture, judged after each of the named changes, or all; "random:N" names N."""
    truths = load_truths(directory / "truth.json")
    return [
        found for name in names_of(names) if (found := _judge(directory, truths, name)) is not None
    ]


def _judge(
    directory: Path, truths: dict[TopicPartition, PartitionTruth], name: str
) -> Comparison | None:
    # Beside the capture, since links do not cross file systems.
    target = Path(tempfile.mkdtemp(prefix="changed-", dir=directory))
    evidence = target / "evidence"
    try:
        is_shape = name in SHAPES or name in OF_DUMPS
        if is_shape:
            shutil.copytree(directory / "evidence", evidence)
            if name in OF_DUMPS:
                directories_to_dumps(evidence)
            (SHAPES | OF_DUMPS)[name](evidence)
        else:
            left_out = withheld_copy(directory / "evidence", evidence, withheld_by(name))
            if name in ALTERED:
                ALTERED[name](evidence)
            elif not left_out:
                return None
        comparison, answer = compare(
            f"{directory.name} {name}",
            evidence,
            truths,
            to_the_end=name not in BEFORE_THE_END,
            may_say_nothing=is_shape,
        )
        comparison.change = name
        if not comparison.right:
            (directory / f"answer-{name}.json").write_text(json.dumps(answer, indent=1))
        return comparison
    finally:
        shutil.rmtree(target)
