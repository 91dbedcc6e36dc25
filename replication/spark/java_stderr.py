"""The job's stderr where spark-submit runs it: that of the JVM.

spark-submit starts Python with its stderr tied to its stdout (PythonRunner), so answers and
progress would come out as one. What the job writes to stderr goes to the JVM's instead. Once the
job says why it ends, nothing else is printed there.
"""

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import TextIO, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext

# Set by spark-submit for the Python that it starts.
STARTED_BY_JVM = "PYSPARK_GATEWAY_PORT"


class JavaStderr(io.TextIOBase):
    """Writes whole lines through the JVM, and where that is gone to Python's own."""

    def __init__(self, own: TextIO) -> None:
        self._own, self._begun = own, ""
        assert SparkContext._jvm is not None
        self._java = SparkContext._jvm.System.err

    def write(self, text: str) -> int:
        lines, end, self._begun = (self._begun + text).rpartition("\n")
        try:
            if end:
                self._java.print(lines + end)
        except (Py4JError, OSError):
            self._own.write(lines + end)
        return len(text)


def silence_java() -> None:
    """From now on stderr has what this job writes there, and nothing else, where spark-submit has
    started it.

    Of a query that failed and of others that are stopped Spark and Kafka's client log on a hundred
    lines, some of them after the job has said what happened; so would Py4J of a JVM that has gone.
    """
    jvm = SparkContext._jvm
    if jvm is None or STARTED_BY_JVM not in os.environ:
        return
    logging.disable(logging.CRITICAL)
    try:
        levels = jvm.org.apache.logging.log4j.Level
        jvm.org.apache.logging.log4j.core.config.Configurator.setAllLevels("", levels.OFF)
        nowhere = jvm.java.io.OutputStream.nullOutputStream()
        jvm.System.setErr(jvm.java.io.PrintStream(nowhere))
    except (Py4JError, OSError):
        return


@contextmanager
def stderr_of_spark_submit() -> Iterator[None]:
    """While it lasts, stderr is that of spark-submit, where that has started this process."""
    if STARTED_BY_JVM not in os.environ:
        yield
        return
    SparkContext._ensure_initialized()
    lines = JavaStderr(sys.stderr)
    with redirect_stderr(cast(TextIO, lines)):
        yield
    if lines._begun:
        lines.write("\n")
