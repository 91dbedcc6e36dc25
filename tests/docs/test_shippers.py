"""docs/shippers.md: each shipper's configuration is one, and what it makes of a line is read."""

import json
import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from ruamel.yaml import YAML

from replication.evidence import digest
from replication.evidence.collecting.envelopes import FieldNames, ShippedLine, shipped_lines
from replication.paths import project_root
from tests.spark.kafka_broker import make_topic, started_broker

PAGE = (project_root() / "docs" / "shippers.md").read_text(encoding="utf-8")
LINE = '[2026-11-20 15:18:29,704] INFO [Broker id=2] Leader t-0 "x" (state.change.logger)'


def configuration(title: str) -> str:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    [found] = re.findall(r"```\w*\n(.*?)```", section, re.DOTALL)
    return str(found)


def read(envelope: dict[str, Any]) -> ShippedLine:
    [line] = shipped_lines(json.dumps(envelope).encode())
    assert isinstance(line, ShippedLine)
    return line


EXPECTED = ShippedLine(LINE, "kafka-2", "/var/log/kafka/server.log", "orders", 4711)


def test_fluent_bit() -> None:
    made = YAML(typ="safe").load(configuration("Fluent Bit"))["pipeline"]
    [tail], [added], [kafka] = made["inputs"], made["filters"], made["outputs"]
    assert (tail["name"], added["name"], kafka["name"]) == ("tail", "record_modifier", "kafka")
    fields = dict(text.split(" ", 1) for text in added["record"])
    fields = {name: value.replace("${HOSTNAME}", "kafka-2") for name, value in fields.items()}
    place = {tail["path_key"]: "/var/log/kafka/server.log", tail["offset_key"]: 4711}
    assert read({"@timestamp": 1.0, "log": LINE, **place, **fields}) == EXPECTED
    assert kafka["format"] == "json"


def test_vector() -> None:
    made = tomllib.loads(configuration("Vector"))
    [source], [transform] = made["sources"].values(), made["transforms"].values()
    [sink] = made["sinks"].values()
    assert transform["inputs"] == list(made["sources"])
    assert sink["inputs"] == list(made["transforms"])
    assert sink["encoding"] == {"codec": "json"}
    name, value = re.fullmatch(r'\.(\w+) = "(\w+)"', transform["source"]).groups()  # type: ignore[union-attr]
    place = {"file": "/var/log/kafka/server.log", "host": "kafka-2", source["offset_key"]: 4711}
    assert read({"message": LINE, "source_type": "file", **place, name: value}) == EXPECTED


def test_filebeat() -> None:
    made = YAML(typ="safe").load(configuration("Filebeat"))
    [source] = made["filebeat.inputs"]
    assert (source["type"], bool(source["id"])) == ("filestream", True)
    place = {"offset": 4711, "file": {"path": "/var/log/kafka/server.log"}}
    host, agent = {"name": "kafka-2"}, {"type": "filebeat", "name": "kafka-2"}
    sent = {"message": LINE, "log": place, "host": host, "agent": agent, "fields": source["fields"]}
    assert (
        read(sent | {"@metadata": {"beat": "filebeat"}, "input": {"type": "filestream"}})
        == EXPECTED
    )


def test_a_digest_from_a_pod_of_its_own_has_the_brokers_host() -> None:
    """By the label and the flag of the page; the broker's own lines keep the name of its pod."""
    section = PAGE.partition("### Digests of Strimzi's brokers")[2].partition("\n## ")[0]
    [field] = re.findall(r"--host-field ([\w.-]+)", section)
    [text] = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    template = YAML(typ="safe").load(text)["spec"]["template"]
    [each] = template["spec"]["containers"]
    flags = each["command"][3:]
    assert flags == ["--every", "60", "--to-stdout"]
    lines: list[str] = []
    incident = project_root() / "tests" / "incidents" / "unclean_election__4.1.1"
    digest.DigestLines(str(incident / "broker-1" / "disk-final"), 60, lines.append).tell()
    labels = template["metadata"]["labels"]
    names = FieldNames(host=(field,))
    pod = {"pod_name": "digest-1-x", "labels": labels}
    for line in lines:
        sent = {"log": f"2026-11-20T15:18:29.704Z stdout F {line}", "kubernetes": pod}
        [found] = shipped_lines(json.dumps(sent).encode(), names)
        assert isinstance(found, ShippedLine)
        assert (found.host, found.digest) == (labels["kafka-broker"], True)
    own = {"log": LINE, "kubernetes": {"pod_name": "my-cluster-broker-0", "labels": {"a": "b"}}}
    [found] = shipped_lines(json.dumps(own).encode(), names)
    assert isinstance(found, ShippedLine)
    assert found.host == labels["kafka-broker"]


@pytest.mark.kafka
@pytest.mark.skipif(shutil.which("rsyslogd") is None, reason="rsyslog is not installed")
def test_rsyslog_sends_into_a_real_topic_what_is_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [LINE, "java.io.IOException: No space left", LINE.replace("29,704", "30,000")]
    (logs / "server.log").write_text("".join(f"{line}\n" for line in lines))
    with started_broker(tmp_path) as broker:
        make_topic(broker, "broker-logs")
        text = configuration("rsyslog").replace("kafka:9092", broker.address)
        config = tmp_path / "rsyslog.conf"
        config.write_text(
            f'global(workDirectory="{tmp_path}")\n{text.replace("/var/log/kafka", str(logs))}'
        )
        checked = subprocess.run(
            ["rsyslogd", "-N1", "-f", str(config)], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr
        shipper = subprocess.Popen(
            ["rsyslogd", "-n", "-f", str(config), "-i", str(tmp_path / "pid")],
            stderr=subprocess.DEVNULL,
        )
        try:
            sent = received(broker.address, len(lines))
        finally:
            shipper.terminate()
            shipper.wait(30)
    found = [line for value in sent for line in shipped_lines(value)]
    assert all(isinstance(line, ShippedLine) for line in found)
    told = sorted((line.offset, line.text) for line in found if isinstance(line, ShippedLine))
    starts = [0, len(lines[0]) + 1, len(lines[0]) + len(lines[1]) + 2]
    assert told == list(zip(starts, lines, strict=True))
    names = {(x.cluster, x.path, bool(x.host)) for x in found if isinstance(x, ShippedLine)}
    assert names == {("orders", str(logs / "server.log"), True)}


def received(address: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        "broker-logs", bootstrap_servers=address, auto_offset_reset="earliest",
        consumer_timeout_ms=1000,
    )  # fmt: skip
    found: list[bytes] = []
    until = time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        found += [record.value for record in consumer]
    consumer.close()
    return found
