"""Files of Hadoop's file systems, by the interfaces of Hadoop and Delta in the JVM beside Spark."""

import errno
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from replication import places
from replication.places import HadoopPath, Place, Status

Result = TypeVar("Result")
# So much is read and written in one call of the JVM.
PIECE = 1 << 20
# Delta's LogStore of each scheme is one that keeps two writers apart (delta.io, storage
# configuration); what it takes for S3 keeps apart the writers of one driver only.
KEPT_APART = ("file", "hdfs", "viewfs", "abfs", "abfss", "gs")
S3 = ("s3", "s3a", "s3n")
CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"


class HadoopFiles:
    """What places.Files asks for. jvm: py4j's view; configuration: Hadoop's."""

    def __init__(self, spark: SparkSession, jvm: Any, configuration: Any) -> None:
        self._spark = spark
        self._jvm = jvm
        self._configuration = configuration

    def qualified(self, uri: str) -> str:
        """The path with its authority, as Spark names it; of `catalog:SCHEMA` the schema's."""
        schema = places.SCHEMA_OF.fullmatch(uri)
        if schema is not None:
            uri = _location(self._spark, schema[1])
        return str(_asked(uri, lambda: self._system(uri).makeQualified(self._path(uri)).toString()))

    def status(self, uri: str) -> Status | None:
        """None where there is nothing."""
        try:
            return _asked(uri, lambda: _status(self._system(uri).getFileStatus(self._path(uri))))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def listed(self, uri: str) -> list[tuple[str, Status]]:
        """Names in a folder, in order."""
        found = _asked(uri, lambda: self._system(uri).listStatus(self._path(uri)))
        return sorted((each.getPath().getName(), _status(each)) for each in found)

    def opened(self, uri: str) -> BinaryIO:
        """For reading, from any place."""
        stream = _asked(uri, lambda: self._system(uri).open(self._path(uri)))
        found = self.status(uri)
        size = 0 if found is None else found.st_size
        return cast(BinaryIO, io.BufferedReader(_Stream(uri, stream, size), PIECE))

    def write(self, uri: str, data: bytes) -> None:
        """Puts a file there, in place of one that is there; folders above it are made."""

        def written() -> None:
            stream = self._system(uri).create(self._path(uri), True)
            for first in range(0, len(data), PIECE):
                stream.write(bytearray(data[first : first + PIECE]))
            stream.close()

        _asked(uri, written)

    def rename(self, uri: str, target: str) -> None:
        """In place of a file that is there."""

        def renamed() -> None:
            source = self._path(uri)
            contexts = self._jvm.org.apache.hadoop.fs.FileContext
            context = contexts.getFileContext(source.toUri(), self._configuration)
            kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            kinds = self._jvm.java.lang.reflect.Array.newInstance(
                self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename"), 1
            )
            kinds[0] = kind.OVERWRITE
            context.rename(source, self._path(target), kinds)

        _asked(uri, renamed)

    def delete(self, uri: str, wholly: bool) -> bool:
        """A file or folder, wholly: with all that is in it; whether it was there."""
        return bool(_asked(uri, lambda: self._system(uri).delete(self._path(uri), wholly)))

    def make_folder(self, uri: str) -> None:
        """With those above it."""
        _asked(uri, lambda: self._system(uri).mkdirs(self._path(uri)))

    def touch(self, uri: str, seconds: float) -> None:
        """Sets the time of change, where the store can."""
        at = int(seconds * 1000)
        _asked(uri, lambda: self._system(uri).setTimes(self._path(uri), at, -1))

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    def _system(self, uri: str) -> Any:
        return self._path(uri).getFileSystem(self._configuration)


def _location(spark: SparkSession, schema: str) -> str:
    quoted = ".".join(f"`{part}`" for part in schema.split("."))
    try:
        told = spark.sql(f"DESCRIBE SCHEMA {quoted}").collect()
    except AnalysisException:
        raise FileNotFoundError(
            errno.ENOENT, "no such schema in Spark's catalog: CREATE SCHEMA makes one", schema
        ) from None
    for row in told:
        if row[0] == "Location":
            return str(row[1])
    raise FileNotFoundError(errno.ENOENT, "this schema of Spark's catalog has no location", schema)


class _Stream(io.RawIOBase):
    """Hadoop's input stream as Python's."""

    def __init__(self, uri: str, stream: Any, size: int) -> None:
        self._uri, self._stream, self._size, self._place = uri, stream, size, 0
        self._stands = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), PIECE, max(0, self._size - self._place))
        if not wanted:
            return 0

        def read() -> bytes:
            if self._stands != self._place:
                self._stream.seek(self._place)
            return bytes(self._stream.readNBytes(wanted))

        data = _asked(self._uri, read)
        buffer[: len(data)] = data
        self._place += len(data)
        self._stands = self._place
        return len(data)

    def readall(self) -> bytes:
        buffer = bytearray(max(0, self._size - self._place))
        done = 0
        while done < len(buffer):
            count = self.readinto(memoryview(buffer)[done:])
            if not count:
                break
            done += count
        return bytes(buffer[:done])

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _status(found: Any) -> Status:
    return Status(
        int(found.getLen()), found.getModificationTime() / 1000, bool(found.isDirectory())
    )


def _asked(uri: str, call: Callable[[], Result]) -> Result:
    """What the JVM answers; its errors as Python's."""
    try:
        return call()
    except Py4JJavaError as error:
        thrown = error.java_exception
        names = _names_of(thrown)
        text = str(thrown.getMessage() or thrown.toString()).splitlines()[0]
        if "FileAlreadyExistsException" in names:
            raise FileExistsError(errno.EEXIST, "File exists", uri) from None
        if "ParentNotDirectoryException" in names or "PathIsNotDirectoryException" in names:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", uri) from None
        if "FileNotFoundException" in names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", uri) from None
        if "AccessControlException" in names or "AccessDeniedException" in names:
            raise PermissionError(errno.EACCES, text, uri) from None
        raise OSError(errno.EIO, f"{names[0]}: {text}", uri) from None
    except Py4JError as error:
        raise OSError(errno.EIO, str(error).splitlines()[0], uri) from None


def _names_of(thrown: Any) -> list[str]:
    """The names of an exception's class and of those that it extends."""
    names, kind = [], thrown.getClass()
    while kind is not None:
        names.append(str(kind.getSimpleName()))
        kind = kind.getSuperclass()
    return names


def bind(spark: SparkSession) -> None:
    """Gives the HadoopPaths of this process what they work by."""
    context = spark.sparkContext
    places.bind(HadoopFiles(spark, context._jvm, context._jsc.hadoopConfiguration()))


def problem(spark: SparkSession, written: Iterable[Place], read: Iterable[Place]) -> str | None:
    """Why this session cannot use these places; None where it can.

    written: where tables, checkpoints or events go.
    """
    context = spark.sparkContext
    default = str(context._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///")
    for place in (*written, *read):
        if not isinstance(place, HadoopPath):
            if not default.startswith("file:"):
                return (
                    f"{place} has no scheme, and the default file system of this Spark is "
                    f"{default}: write {default.rstrip('/')}{place}, or give --conf "
                    "spark.hadoop.fs.defaultFS=file:/// for paths of the machines"
                )
            continue
        try:
            place.exists()
        except OSError as error:
            return f"{place}: {error.strerror}"
    return next((told for place in written if (told := _not_safe(spark, place))), None)


def has_class(jvm: Any, name: str) -> bool:
    """Whether a class is among the jars of a JVM."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JError:
        return False
    return True


def _not_safe(spark: SparkSession, place: Place) -> str | None:
    """Why commits on a store would not be kept apart."""
    if not isinstance(place, HadoopPath):
        return None
    scheme = str(place).partition(":")[0]
    store = f"spark.delta.logStore.{scheme}.impl"
    for setting in (store, CHECKPOINTS):
        chosen = spark.conf.get(setting, "")
        if chosen and not has_class(spark.sparkContext._jvm, chosen):
            return (
                f"{place}: there is no class {chosen} ({setting}): give the jar that has it by "
                "--jars or --packages"
            )
    if scheme not in KEPT_APART and not spark.conf.get(store, ""):
        return (
            f"{place}: two writers of {scheme}: would not be kept apart. Name the LogStore that "
            f"keeps them apart there by --conf {store}=CLASS (docs/running.md)"
        )
    if scheme in S3 and not spark.conf.get(CHECKPOINTS, ""):
        return (
            f"{place}: nothing on {scheme}: is renamed at once, as Spark's checkpoints need it. "
            f"Name what writes them there by --conf {CHECKPOINTS}=CLASS (docs/running.md)"
        )
    return None


def upload(spark: SparkSession, folder: Path, target: HadoopPath) -> None:
    """Copies a folder of this machine to a store. Raises OSError."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    paths = jvm.org.apache.hadoop.fs.Path
    source, goal = paths(folder.as_uri()), paths(str(target))
    system = goal.getFileSystem(configuration)
    _asked(str(target), lambda: system.copyFromLocalFile(False, True, source, goal))


def put_by_delta(spark: SparkSession, commit: HadoopPath, lines: Iterable[str]) -> bool:
    """Writes a commit of a Delta table by the LogStore that Delta has for that file system; False
    where that version is there already."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    store = jvm.org.apache.spark.sql.delta.storage.LogStore.apply(spark._jsparkSession)
    given = jvm.java.util.ArrayList()
    for line in lines:
        given.add(line)
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(given.iterator())
    path = jvm.org.apache.hadoop.fs.Path(str(commit))
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    try:
        _asked(str(commit), lambda: store.write(path, actions, False, configuration))
    except FileExistsError:
        return False
    return True
