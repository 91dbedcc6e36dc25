"""Ends a stream between two micro-batches, whichever process is told to: Python, or spark-submit.

spark-submit is a JVM, and Kubernetes, YARN and systemd send SIGTERM to that: it would stop Spark
under the running micro-batch. So a hook of the highest priority holds its shutdown up until the job
has ended; how long Spark lets it is -Dspark.shutdown.timeout in conf/spark-defaults.conf.
"""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

# Before all of Spark's own hooks, of which the highest has 100.
FIRST = 1_000
# A micro-batch that is cut off is done again at the next start; ending between two is tidier.
LAST_MICRO_BATCH_SECONDS = 100.0
# So long the JVM has to take in that a query is to stop, before its last micro-batch lets go.
STOP_SECONDS = 0.5
# So long a query may still ask its source what is new, which writes nothing: Kafka's client asks
# for minutes where no broker answers.
SOURCE_SECONDS = 5.0
ASKS_ITS_SOURCE = "Getting offsets from "
# So long a query may take to let go of what it was doing, when it is stopped.
LETTING_GO = "10s"
# So long Python stays after its job, so that the JVM hears that the hook is done.
REPLY_SECONDS = 1.0


@dataclass
class Stop:
    """Whether the job was asked to end: then the running micro-batches end first.

    told_by_jvm: the JVM waits for that. ended: set when the job has ended, so that the JVM may too.
    take_hook_away: has the JVM not wait any more; False where it does not. resting: the queries
    that wait after a micro-batch to be stopped.
    """

    asked: bool = False
    told_by_jvm: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    take_hook_away: Callable[[], Any] = bool
    resting: set[str] = field(default_factory=set)
    _stopping: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def asked_by(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT."""
        self.asked = True

    def between(self, query: str) -> None:
        """A query has written a micro-batch whole: where the job is to end it goes no further."""
        if not self.asked:
            return
        with self._changed:
            self.resting.add(query)
            self._changed.wait_for(lambda: query in self._stopping, 1.4 * LAST_MICRO_BATCH_SECONDS)
        # What Spark does after a stop has begun it gives up, or has done: either is right.
        time.sleep(STOP_SECONDS)

    def stopping(self, query: str) -> None:
        """A query is about to be stopped: it need not wait for that any more."""
        with self._changed:
            self._stopping.add(query)
            self._changed.notify_all()

    def listen(self, spark: SparkSession) -> None:
        """Takes SIGTERM and SIGINT of this process, and the end of the JVM."""
        signal.signal(signal.SIGTERM, self.asked_by)
        signal.signal(signal.SIGINT, self.asked_by)
        gateway = spark.sparkContext._gateway
        jvm = spark.sparkContext._jvm
        assert gateway is not None
        assert jvm is not None
        ensure_callback_server_started(gateway)
        hooks = jvm.org.apache.spark.util.ShutdownHookManager
        hook = hooks.addShutdownHook(FIRST, _Hook(self))
        self.take_hook_away = lambda: hooks.removeShutdownHook(hook)

    def leave(self) -> None:
        """The job has ended: a JVM that ends after it does not call a Python that is gone."""
        self.ended.set()
        # A JVM that is ending, or has ended, gives no hook back.
        with suppress(Py4JError, OSError):
            self.take_hook_away()
        if self.told_by_jvm:
            time.sleep(REPLY_SECONDS)


def last_micro_batch(query: StreamingQuery, stop: Stop) -> str:
    """Waits until the query has ended its micro-batch; what it was still asking its source then,
    in Spark's words, "" where it was not."""
    began = time.monotonic()
    while query.isActive and (status := query.status)["isTriggerActive"]:
        waited, message = time.monotonic() - began, status["message"]
        if message.startswith(ASKS_ITS_SOURCE) and waited > SOURCE_SECONDS:
            return str(message)
        if query.name in stop.resting or waited > LAST_MICRO_BATCH_SECONDS:
            break
        time.sleep(0.1)
    return ""


def stopped(spark: SparkSession, query: StreamingQuery) -> bool:
    """Stops a query; whether it has let go of what it was doing. Else it ends with the process."""
    spark.conf.set("spark.sql.streaming.stopTimeout", LETTING_GO)
    try:
        query.stop()
    except Exception as error:
        if "TimeoutException" not in str(error):
            raise
        return False
    return True


class _Hook:
    """What the JVM calls when it is told to end, in a thread of its own."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def apply(self) -> None:
        """Asks the job to end and waits until it has."""
        self._stop.asked = self._stop.told_by_jvm = True
        self._stop.ended.wait(1.4 * LAST_MICRO_BATCH_SECONDS)

    class Java:
        """Py4J: the JVM's interface that this is."""

        implements = ("scala.Function0",)


# What Scala calls where a function gives nothing back.
setattr(_Hook, "apply$mcV$sp", _Hook.apply)
