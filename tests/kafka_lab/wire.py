"""One blocking connection to a broker, speaking exactly the requests it is given.

A client library retries, batches and looks up metadata on its own; here one call is one request
and one response, so that what became of every record is known.
"""

import socket
import struct
from typing import Any

from kafka.protocol.admin import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
)
from kafka.protocol.admin.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

from tests.kafka_lab.versions import Version

HOST = "127.0.0.1"
NOT_CONTROLLER, REASSIGNMENT_IN_PROGRESS, ELECTION_NOT_NEEDED = 41, 60, 84
CONFIG_OF_TOPIC = 2
TRANSACTION_KEY = 1


class Refused(Exception):
    """A broker answered a request of the laboratory itself with an error code."""

    def __init__(self, what: str, error_code: int) -> None:
        super().__init__(f"{what}: error code {error_code}")
        self.error_code = error_code


class Connection:
    """One socket; `send` and `receive` may be apart, to have several requests in flight."""

    def __init__(self, port: int, client: str, timeout: float = 10.0) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=min(timeout, 3.0))
        self.socket.settimeout(timeout)
        self.client = client
        self.sent = 0
        self._in_flight: list[Any] = []

    def send(self, request: Any, *, answered: bool = True) -> None:
        """`answered` is false for a produce request with acks=0."""
        self.sent += 1
        request.with_header(self.sent, self.client)
        if answered:
            self._in_flight.append(ResponseClassRegistry.get_response_class(request.header))
        self.socket.sendall(bytes(request.encode(header=True, framed=True)))

    def receive(self) -> Any:
        (size,) = struct.unpack(">i", self._exactly(4))
        body = self._exactly(size)
        return self._in_flight.pop(0).decode(body, header=True)

    def call(self, request: Any) -> Any:
        self.send(request)
        return self.receive()

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def metadata_request(version: Version, topics: list[str]) -> Any:
    asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(
        version=version.metadata_api, topics=asked, allow_auto_topic_creation=False
    )


def produce_request(
    version: Version,
    topic: str,
    partition: int,
    acks: str,
    records: bytes,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> Any:
    """`acks` is "0", "1" or "all"; `records` is one whole batch."""
    data = ProduceRequest.TopicProduceData(
        name=topic,
        partition_data=[
            ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=records)
        ],
    )
    return ProduceRequest(
        version=version.produce_api,
        transactional_id=transactional_id,
        acks={"0": 0, "1": 1, "all": -1}[acks],
        timeout_ms=timeout_ms,
        topic_data=[data],
    )


def producer_id_request(transactional_id: str | None = None) -> Any:
    """For an idempotent producer; with a transactional id to be asked of its coordinator."""
    return InitProducerIdRequest(
        version=0, transactional_id=transactional_id, transaction_timeout_ms=60_000
    )


def coordinator_request(transactional_id: str) -> Any:
    return FindCoordinatorRequest(version=1, key=transactional_id, key_type=TRANSACTION_KEY)


def add_partition_request(
    transactional_id: str, producer: tuple[int, int], topic: str, partition: int
) -> Any:
    """Takes a partition into the transaction; `producer` is the producer id and epoch."""
    named = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest(
        version=0,
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[named(name=topic, partitions=[partition])],
    )


def end_transaction_request(
    transactional_id: str, producer: tuple[int, int], *, commit: bool
) -> Any:
    return EndTxnRequest(
        version=0,
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )


def create_topic_request(
    version: Version, topic: str, assignment: dict[int, list[int]], configs: dict[str, str]
) -> Any:
    made = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        version=version.create_topics_api,
        topics=[
            made(
                name=topic,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    made.CreatableReplicaAssignment(partition_index=partition, broker_ids=replicas)
                    for partition, replicas in assignment.items()
                ],
                configs=[
                    made.CreatableTopicConfig(name=name, value=value)
                    for name, value in configs.items()
                ],
            )
        ],
        timeout_ms=10_000,
        validate_only=False,
    )


def delete_topic_request(topic: str) -> Any:
    return DeleteTopicsRequest(version=1, topic_names=[topic], timeout_ms=10_000)


def delete_records_request(topic: str, partition: int, before_offset: int) -> Any:
    named = DeleteRecordsRequest.DeleteRecordsTopic
    cut = named.DeleteRecordsPartition(partition_index=partition, offset=before_offset)
    return DeleteRecordsRequest(
        version=0, topics=[named(name=topic, partitions=[cut])], timeout_ms=10_000
    )


def create_partitions_request(topic: str, count: int, added: list[list[int]]) -> Any:
    """So many partitions altogether; `added` are the replicas of each new one."""
    named = CreatePartitionsRequest.CreatePartitionsTopic
    placed = [named.CreatePartitionsAssignment(broker_ids=replicas) for replicas in added]
    return CreatePartitionsRequest(
        version=0,
        topics=[named(name=topic, count=count, assignments=placed)],
        timeout_ms=10_000,
        validate_only=False,
    )


def alter_directory_request(directory: str, topic: str, partition: int) -> Any:
    """Moves a broker's own replica to another of its log directories."""
    named = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    moved = named.AlterReplicaLogDirTopic(name=topic, partitions=[partition])
    return AlterReplicaLogDirsRequest(version=0, dirs=[named(path=directory, topics=[moved])])


def alter_config_request(version: Version, topic: str, configs: dict[str, str]) -> Any:
    """Sets these settings of the topic; before 2.3 the whole set is replaced by them."""
    if version.at_least(2, 3):
        named = IncrementalAlterConfigsRequest.AlterConfigsResource
        return IncrementalAlterConfigsRequest(
            version=0,
            resources=[
                named(
                    resource_type=CONFIG_OF_TOPIC,
                    resource_name=topic,
                    configs=[
                        named.AlterableConfig(name=name, config_operation=0, value=value)
                        for name, value in configs.items()
                    ],
                )
            ],
            validate_only=False,
        )
    older = AlterConfigsRequest.AlterConfigsResource
    return AlterConfigsRequest(
        version=0,
        resources=[
            older(
                resource_type=CONFIG_OF_TOPIC,
                resource_name=topic,
                configs=[
                    older.AlterableConfig(name=name, value=value) for name, value in configs.items()
                ],
            )
        ],
        validate_only=False,
    )


def reassign_request(topic: str, partition: int, replicas: list[int]) -> Any:
    named = AlterPartitionReassignmentsRequest.ReassignableTopic
    moved = named.ReassignablePartition(partition_index=partition, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        version=0, timeout_ms=10_000, topics=[named(name=topic, partitions=[moved])]
    )


def election_request(topic: str, partition: int, *, unclean: bool = False) -> Any:
    """Of the first replica if it is in the ISR; unclean: of any that runs, if nobody leads."""
    named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])
    return ElectLeadersRequest(
        version=1,
        election_type=ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED,
        topic_partitions=[named],
        timeout_ms=10_000,
    )
