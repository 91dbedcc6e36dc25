"""The one reader of Kafka's messages, beside the bytes that Kafka's own classes wrote."""

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence.messages.byte_reader import ByteReader, MessageError
from replication.evidence.messages.layouts import layout, layouts_of_type, snake_case
from replication.evidence.messages.reading import read_whole
from tests.evidence.messages import from_jars, through_kafka, writing

RECORDED = through_kafka.recorded()


def read(name: str, version: int, content: bytes) -> dict[str, Any]:
    return read_whole(layout(name), version, ByteReader(content))


def in_json(value: Any) -> Any:
    """Values as Kafka's JSON shows them, but for the names."""
    if isinstance(value, dict):
        return {name: in_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [in_json(one) for one in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake_case(name): renamed(one) for name, one in value.items()}
    return [renamed(one) for one in value] if isinstance(value, list) else value


def test_every_layout_in_every_version_is_among_what_kafka_wrote() -> None:
    told = {(case["name"], case["version"]) for case in RECORDED}
    kept = [writing.kept(path.stem) for path in from_jars.LAYOUTS.glob("*.json")]
    assert told == {(one["name"], version) for one in kept for version in writing.versions(one)}
    assert len(kept) == 71
    assert len(layouts_of_type("coordinator-value")) == 25


def test_bytes_that_kafka_wrote_are_read_as_kafka_reads_them_and_written_as_it_does() -> None:
    for case in RECORDED:
        name, version, content = case["name"], case["version"], bytes.fromhex(case["bytes"])
        assert in_json(read(name, version, content)) == renamed(case["read"]), name
        assert case["read"] == case["values"], name
        assert writing.message(name, version, case["read"]) == content, name


def test_a_message_that_was_cut_or_goes_on_is_refused() -> None:
    for case in RECORDED[::3]:
        content = bytes.fromhex(case["bytes"])
        for at in range(len(content)):
            with contextlib.suppress(MessageError):
                # A text or an array of no length hides that its elements are missing.
                read(case["name"], case["version"], content[:at])
                raise AssertionError(case["name"], at)
        with pytest.raises(MessageError, match="1 bytes are left over"):
            read(case["name"], case["version"], content + b"\0")


def test_a_tag_of_a_later_release_is_passed_over() -> None:
    values = {"offset": 7, "leaderEpoch": 2, "metadata": "", "commitTimestamp": 9}
    content = writing.message("OffsetCommitValue", 4, values)
    assert content[-1:] == b"\0"
    later = content[:-1] + b"\x02\x00\x10" + b"\1" * 16 + b"\x09\x03abc"
    told = read("OffsetCommitValue", 4, later)
    assert told.pop("topic_id") == "AQEBAQEBAQEBAQEBAQEBAQ"
    assert told == renamed(values)
    assert read("OffsetCommitValue", 5, later)["offset"] == 7
    with pytest.raises(MessageError, match="OffsetCommitValue version 5, newer than 4: "):
        read("OffsetCommitValue", 5, later + b"\1")


@given(st.sampled_from(RECORDED), st.binary(max_size=200))
def test_any_bytes_are_answered(case: dict[str, Any], content: bytes) -> None:
    with contextlib.suppress(MessageError):
        read(case["name"], case["version"], content)


@pytest.mark.kafka
def test_the_layouts_are_those_of_the_jars_and_the_bytes_those_of_their_classes() -> None:
    assert from_jars.differing() == {}
    assert through_kafka.written_by_kafka() == RECORDED
