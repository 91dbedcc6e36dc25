"""A stream's end: the JVM has nothing left to call in a Python that is gone."""

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from replication.spark.ending import Stop

pytestmark = pytest.mark.spark


@pytest.fixture
def handlers_as_before() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers_as_before")
def test_a_job_that_has_ended_takes_its_hook_out_of_the_jvm(spark: SparkSession) -> None:
    taken = []
    stop = Stop()
    stop.listen(spark)
    take_away = stop.take_hook_away
    stop.take_hook_away = lambda: taken.append(take_away())
    stop.leave()
    assert taken == [True]
    assert take_away() is False
