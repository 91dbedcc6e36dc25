"""The job's stderr where spark-submit runs it: that of the JVM.

spark-submit starts Python with its stderr tied to its stdout (PythonRunner), so answers and
progress would come out as one. What the job writes to stderr goes to the JVM's instead.
"""

import io
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

    def write(self, text: str) -> int:
        lines, end, self._begun = (self._begun + text).rpartition("\n")
        try:
            if end:
                assert SparkContext._jvm is not None
                SparkContext._jvm.System.err.print(lines + end)
        except (Py4JError, OSError):
            self._own.write(lines + end)
        return len(text)


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
