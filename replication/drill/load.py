"""The load of a drill: a producer at a steady rate, and the acknowledgement log that it keeps."""

import logging
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from replication.drill.cluster import NoDrill
from replication.drill.plan import Load, Plan
from replication.recovery.connecting import said
from replication.tap import AcknowledgementLog

TICK_SECONDS = 0.01
# What could not be sent in time is sent later, up to so much; the rest of it is left out.
MOST_ARREARS_SECONDS = 1.0
_FILLER = "."
_PURGE_SECONDS = 2.0
# At the end: so many records to one partition before their answers are looked at, and so long.
MOST_AT_ONCE = 5_000
_TRY_SECONDS = 2.0
# As the library has it.
ANY_PARTITION = -1
_Partition = tuple[str, int]
# What the library has to say is in the answers to the records.
_SILENT = logging.Logger("drill", logging.CRITICAL + 1)


class RunningLoad:
    """Sends from `start` until `stop`, in a thread of its own. Every record has its own id, the
    first word of its value. library: confluent_kafka."""

    def __init__(
        self, library: Any, plan: Plan, settings: dict[str, Any], folder: Path, run: str
    ) -> None:
        self.sent = self.acknowledged = self.renewed = 0
        self.errors: Counter[str] = Counter()
        self.seconds = 0.0
        self._highest: dict[_Partition, int] = {}
        self._newest: dict[_Partition, int] = {}
        self.not_grown: dict[_Partition, int] = {}
        self._library, self._load, self._run = library, plan.load, run
        self._raised = (library.KafkaException, library.KafkaError)
        self._topics = [topic.name for topic in plan.topics]
        self._settings = {**settings, **_producer_settings(plan.load)}
        self.log = AcknowledgementLog(
            folder,
            client=f"drill-{run}",
            acks=plan.load.acks,
            payload_id="value",
            sample=plan.load.sample,
        )
        try:
            self._producer = self._new_producer()
        except library.KafkaException as error:
            self.log.close()
            raise NoDrill(f"the load cannot begin: {said(error)}") from None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True, name="drill-load")
        self._began = time.monotonic()

    def start(self) -> None:
        self._began = time.monotonic()
        self._thread.start()

    @property
    def running_for(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def stop(self, patience: float) -> None:
        """Ends it: every record gets its answer, within `patience` seconds, or counts as one whose
        outcome is unknown; then each partition grows past all that was acknowledged in it, within
        as many seconds again. The log is complete then."""
        self._stopping.set()
        self._thread.join()
        self.seconds = self.running_for
        self._end(self._producer, patience)
        self._grow_past(dict(self._highest), time.monotonic() + patience)
        self._end(self._producer, patience)
        self.log.close()

    def _grow_past(self, wanted: dict[_Partition, int], end: float) -> None:
        """Writes on until an answer of each partition is above the offset that is wanted there: a
        record that was lost has another one in its place then, in whatever copy. `not_grown` are
        those of which none came by the end (on the monotonic clock)."""
        self._newest.clear()
        while True:
            self.not_grown = {
                partition: offset
                for partition, offset in wanted.items()
                if self._newest.get(partition, -1) <= offset
            }
            if not self.not_grown or time.monotonic() >= end:
                return
            for (topic, partition), offset in self.not_grown.items():
                gap = offset + 1 - self._newest.get((topic, partition), offset)
                try:
                    for _ in range(min(gap, MOST_AT_ONCE)):
                        self._send_one(topic, partition)
                except BufferError:
                    self._poll()
                except self._raised as error:
                    self._went_wrong(error)
            # Several tries: the first may find that a producer or a leader has gone.
            self._flush(self._producer, min(_TRY_SECONDS, max(end - time.monotonic(), 0)))

    def _end(self, producer: Any, patience: float) -> None:
        """Until each of its records has an answer; what has none by then has an unknown outcome."""
        if self._flush(producer, patience):
            producer.purge()
            self._flush(producer, _PURGE_SECONDS)

    def _flush(self, producer: Any, patience: float) -> int:
        """How many records have no answer after so many seconds."""
        end = time.monotonic() + patience
        while True:
            try:
                left = int(producer.flush(max(end - time.monotonic(), 0)))
            except self._raised:
                # That the producer has ended; its records are answered all the same.
                left = len(producer)
            if not left or time.monotonic() >= end:
                return left

    def _answer(self, error: Any, message: Any) -> None:
        self.log(error, message)
        if error is None:
            self.acknowledged += 1
            partition, offset = (message.topic(), message.partition()), message.offset()
            if offset >= 0:  # With acks=0 none is told.
                self._newest[partition] = offset
                self._highest[partition] = max(offset, self._highest.get(partition, -1))
        else:
            self.errors[error.name()] += 1

    def _send(self) -> None:
        start, behind = time.monotonic(), 0
        most = max(int(self._load.rate * MOST_ARREARS_SECONDS), 1)
        while not self._stopping.is_set():
            due = int((time.monotonic() - start) * self._load.rate) - self.sent - behind
            behind += max(due - most, 0)
            try:
                for _ in range(min(due, most)):
                    self._send_one()
                self._producer.poll(0)
            except BufferError:
                # No room just now: the cluster takes nothing.
                self._stopping.wait(0.05)
                self._poll()
            except self._raised as error:
                self._went_wrong(error)
            self._stopping.wait(TICK_SECONDS)

    def _poll(self) -> None:
        try:
            self._producer.poll(0)
        except self._raised as error:
            self._went_wrong(error)

    def _went_wrong(self, error: Any) -> None:
        """An idempotent producer ends where the cluster lost what it had acknowledged; the load
        goes on with a new one, under the same name."""
        told = error if isinstance(error, self._library.KafkaError) else error.args[0]
        if told.fatal() or told.name() == "_FATAL":
            self.renewed += 1
            self._end(self._producer, 0)
            self._producer = self._new_producer()

    def _new_producer(self) -> Any:
        return self._library.Producer(self._settings, logger=_SILENT)

    def _send_one(self, topic: str | None = None, partition: int = ANY_PARTITION) -> None:
        """The next record, to the next topic where none is named."""
        number = self.sent
        count = len(self._topics)
        key = f"key-{number // count % self._load.keys:06d}" if self._load.keys else None
        value = f"{self._run}-{number:09d} ".ljust(self._load.value_bytes, _FILLER)
        to = topic or self._topics[number % count]
        self._producer.produce(to, value, key, partition, on_delivery=self._answer)
        self.sent += 1


def _producer_settings(load: Load) -> dict[str, Any]:
    milliseconds = max(int(load.timeout * 1000), 1000)
    return {
        "acks": load.acks,
        "enable.idempotence": load.idempotent,
        "linger.ms": 5,
        "message.timeout.ms": milliseconds,
        "request.timeout.ms": min(milliseconds, 30_000),
        "topic.metadata.refresh.interval.ms": 5_000,
    }
