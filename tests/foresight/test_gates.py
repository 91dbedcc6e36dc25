"""What `preflight` takes by default is told; the calls of its page part good settings from bad."""

import json
import re
from pathlib import Path

import pytest

from replication.cli import main
from tests.foresight.test_preflight import ROOT, written

FEATURES = {
    "on": "Feature: eligible.leader.replicas.version\tSupportedMinVersion: 0\t"
    "SupportedMaxVersion: 1\tFinalizedVersionLevel: 1\tEpoch: 5\n",
    "of_release": "Feature: metadata.version\tSupportedMinVersion: 3.3-IV3\t"
    "SupportedMaxVersion: 4.1-IV1\tFinalizedVersionLevel: 4.1-IV1\tEpoch: 5\n",
}  # fmt: skip
ALL = (
    "min.insync.replicas=2,unclean.leader.election.enable=false,flush.messages=9223372036854775807"
)
UNTOLD = ["unclean.leader.election.enable", "min.insync.replicas", "flush.messages"]
ELR = "eligible.leader.replicas.version"


@pytest.mark.parametrize(
    ("release", "settings", "features", "more", "untold"),
    [
        ("4.1.0", ALL, "on", [], []),
        ("4.1.0", ALL, "of_release", [], []),
        ("4.1.0", ALL, None, ["--elr", "off"], []),
        ("4.1.0", ALL, None, [], [ELR]),
        ("4.1.0", "", None, [], [ELR, *UNTOLD]),
        ("3.9.1", ALL, None, [], ["controller"]),
        ("3.9.1", ALL, None, ["--controller", "kraft"], []),
        ("3.9.1", "min.insync.replicas=2", None, [], ["controller", UNTOLD[0], UNTOLD[2]]),
        ("1.1.1", ALL, None, [], []),
    ],
)
def test_what_nothing_says_is_told_as_taken_by_default(
    release: str, settings: str, features: str | None, more: list[str], untold: list[str],
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Whether a cluster that was upgraded keeps eligible leader replicas no release tells."""
    written(tmp_path, 1, settings)
    if features is not None:
        (tmp_path / "features.txt").write_text(FEATURES[features], encoding="utf-8")
    call = ["preflight", str(tmp_path), "--kafka", release, "--failure", "one_broker",
            "--no-changes", *more]  # fmt: skip
    main([*call, "--format", "json"])
    (profile,) = json.loads(capsys.readouterr().out)["profiles"]
    found = {d["setting"]: d["value"] for d in profile["defaults"]}
    assert list(found) == untold
    if ELR in found:
        assert (found[ELR] == "1") is profile["eligible_leader_replicas"]
    if "controller" in found:
        assert found["controller"] == profile["controller"]
    main(call)
    said = [line for line in capsys.readouterr().out.splitlines() if "defaults are taken" in line]
    assert len(said) == bool(untold)
    assert all(f"{name} {found[name]}" in said[0] for name in untold)


PAGE = (ROOT / "docs" / "preflight.md").read_text("utf-8")
GATES = re.findall(
    r"^replication-analyzer preflight (?:\S+\.txt )+(--kafka .*)$",
    PAGE.partition("## In CI")[2].partition("\n## ")[0],
    re.M,
)


@pytest.mark.parametrize("gate", GATES)
def test_the_gates_of_the_page_part_good_settings_from_bad(
    gate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def passes(settings: str) -> bool:
        path = tmp_path / "describe.txt"
        path.write_text(
            f"Topic: t\tTopicId: 2__hL4ioTz2vL9G9ufTZnQ\tPartitionCount: 1\tReplicationFactor: 3\t"
            f"Configs: {settings}\n"
            "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
        )
        call, _, then = gate.partition(" > ")
        status = main(["preflight", str(path), *call.split()])
        said = capsys.readouterr().out
        if not then:
            return status == 0
        assert then.endswith(
            "'[.profiles[].leader_alone_answers_acks_all] | any | not' answer.json"
        )
        return status == 0 and not any(
            p["leader_alone_answers_acks_all"] for p in json.loads(said)["profiles"]
        )

    off = "unclean.leader.election.enable=false"
    assert passes(f"min.insync.replicas=2,{off}")
    assert not passes(f"min.insync.replicas=1,{off}")
    assert not passes("min.insync.replicas=2,unclean.leader.election.enable=true")


def test_each_generation_has_a_gate() -> None:
    assert [gate.split()[1] for gate in GATES] == ["4.1.1", "3.9.1"]
