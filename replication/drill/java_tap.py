"""Builds the acknowledgement log for Java producers, a jar that needs kafka-clients alone.

    python -m replication.drill.java_tap kafka-clients-3.9.1.jar acknowledgement-log.jar

The jar runs on Java 8 and later, with kafka-clients 0.11 to 4.3, whichever of these it was built
with. It needs a JDK: javac and jar.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from replication.drill.cluster import NoDrill

SOURCES = ("AcknowledgementLog.java", "AcknowledgementInterceptor.java")


def build(kafka_clients: Path, jar: Path) -> None:
    """Compiles the sources against kafka-clients into a jar. Raises NoDrill."""
    for tool in ("javac", "jar"):
        if shutil.which(tool) is None:
            raise NoDrill(f"no {tool} in PATH: building the jar needs a JDK, 9 or later")
    if not kafka_clients.is_file():
        raise NoDrill(f"{kafka_clients}: no such file; expected the jar kafka-clients-VERSION.jar")
    folder = resources.files("replication.drill") / "java" / "replication" / "tap"
    with tempfile.TemporaryDirectory() as made:
        sources = Path(made) / "sources"
        sources.mkdir()
        for name in SOURCES:
            (sources / name).write_bytes((folder / name).read_bytes())
        classes = str(Path(made) / "classes")
        files = [str(sources / name) for name in SOURCES]
        compiled = ["javac", "--release", "8", "-Xlint:-options", "-cp", str(kafka_clients)]
        _call([*compiled, "-d", classes, *files])
        _call(["jar", "cf", str(jar.resolve()), "-C", classes, "."])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoDrill(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("kafka_clients", type=Path, help="kafka-clients-VERSION.jar")
    parser.add_argument("jar", type=Path, help="where the jar is written")
    options = parser.parse_args()
    try:
        build(options.kafka_clients, options.jar)
    except NoDrill as error:
        print(f"java_tap: {error}", file=sys.stderr)
        return 2
    print(options.jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
