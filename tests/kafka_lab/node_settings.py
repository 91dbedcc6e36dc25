"""Settings of the laboratory's processes: broker, controller and ZooKeeper, and their logging.

`default` logging has the files and levels that Kafka ships with (the four files, rolled hourly);
`trace` has one file with the loggers that tell of every append, fetch and high watermark.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.kafka_lab.versions import Version

CONTROLLER_ID = 100
JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xss512k",
    "-XX:MaxDirectMemorySize=64m",
    "-Duser.timezone=UTC",
    "-Dzookeeper.admin.enableServer=false",
)
LAYOUT = "[%d] %p %m (%c)%n"

SMALL: dict[str, str] = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "num.replica.fetchers": "1",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.index.size.max.bytes": "65536",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.enable": "false",
    "replica.lag.time.max.ms": "5000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
KRAFT: dict[str, str] = {
    "controller.listener.names": "CONTROLLER",
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
}
SHARE_GROUPS: dict[str, str] = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
ZOOKEEPER: dict[str, str] = {
    "zookeeper.session.timeout.ms": "4000",
    "controlled.shutdown.retry.backoff.ms": "300",
}
PROTOCOLS = "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"


def write_properties(path: Path, settings: Mapping[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def read_properties(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def controller_settings(directory: Path, port: int, meeting_port: int) -> dict[str, str]:
    """It listens on `port`; all are told `meeting_port`, which may be a tap's."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{meeting_port}",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "advertised.listeners": f"CONTROLLER://127.0.0.1:{meeting_port}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{PROTOCOLS}",
        "log.dirs": str(directory),
        "unclean.leader.election.enable": "false",
        **KRAFT,
        **SHARE_GROUPS,
    }


def broker_settings(
    version: Version,
    broker: int,
    directories: list[Path],
    ports: tuple[int, int, int],
    meeting_port: int,
) -> dict[str, str]:
    """`ports`: internal, external, and the one other brokers are told (a tap's, or the internal).

    `meeting_port` is the controller's, or ZooKeeper's.
    """
    internal, external, advertised = ports
    common = {
        "listeners": f"INTERNAL://127.0.0.1:{internal},EXTERNAL://127.0.0.1:{external}",
        "advertised.listeners": (
            f"INTERNAL://127.0.0.1:{advertised},EXTERNAL://127.0.0.1:{external}"
        ),
        "inter.broker.listener.name": "INTERNAL",
        "log.dirs": ",".join(map(str, directories)),
        **SMALL,
    }
    if version.kraft:
        return {
            "process.roles": "broker",
            "node.id": str(broker),
            "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{meeting_port}",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{PROTOCOLS}",
            **common,
            **KRAFT,
            **(SHARE_GROUPS if version.at_least(4, 0) else {}),
        }
    return {
        "broker.id": str(broker),
        "zookeeper.connect": f"127.0.0.1:{meeting_port}",
        "listener.security.protocol.map": PROTOCOLS,
        **common,
        **ZOOKEEPER,
    }


def zookeeper_settings(directory: Path, port: int) -> dict[str, str]:
    return {
        "tickTime": "500",
        "dataDir": str(directory),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": "0",
        "minSessionTimeout": "2000",
        "maxSessionTimeout": "60000",
        "admin.enableServer": "false",
    }


def logging_option(version: Version, path: Path, grade: str) -> str:
    """Writes the logging configuration and answers the JVM option that selects it."""
    loggers = _traced_loggers() if grade == "trace" else _shipped_loggers(version)
    path.parent.mkdir(parents=True, exist_ok=True)
    if version.log4j2:
        path.write_text(_log4j2(loggers))
        return f"-Dlog4j2.configurationFile=file:{path}"
    path.write_text(_log4j1(loggers))
    return f"-Dlog4j.configuration=file:{path}"


# A logger: its name, its level and the file it writes to; the root comes first.
Loggers = list[tuple[str, str, str]]


def _shipped_loggers(version: Version) -> Loggers:
    state_change = "INFO" if version.at_least(2, 6) else "TRACE"
    found = [("", "INFO", "server"), ("state.change.logger", state_change, "state-change")]
    if version.kraft:
        found.append(("org.apache.kafka.controller", "INFO", "controller"))
    if not version.at_least(4, 0):
        found.append(("kafka.controller", "TRACE", "controller"))
    cleaner = "org.apache.kafka.storage.internals.log" if version.at_least(4, 0) else "kafka.log"
    found += [
        (f"{cleaner}.LogCleaner", "INFO", "log-cleaner"),
        ("kafka.request.logger", "WARN", "kafka-request"),
        ("kafka.network.RequestChannel$", "WARN", "kafka-request"),
    ]
    if version.at_least(4, 0):
        found.append((f"{cleaner}.Cleaner", "INFO", "log-cleaner"))
    return found


def _traced_loggers() -> Loggers:
    traced = (
        "state.change.logger",
        "kafka.cluster.Partition",
        "kafka.cluster.Replica",
        "kafka.server.ReplicaFetcherThread",
        "kafka.log.Log",
        "kafka.log.UnifiedLog",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        "kafka.server.epoch.LeaderEpochFileCache",
        "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache",
        "kafka.controller",
        "org.apache.kafka.controller",
    )
    return [("", "INFO", "all"), *((name, "TRACE", "all") for name in traced)]


def _log4j1(loggers: Loggers) -> str:
    files = sorted({file for _, _, file in loggers})
    lines = []
    for file in files:
        appender = f"log4j.appender.{file}"
        lines += [
            f"{appender}=org.apache.log4j.DailyRollingFileAppender",
            f"{appender}.DatePattern='.'yyyy-MM-dd-HH",
            f"{appender}.File=${{kafka.logs.dir}}/{file}.log",
            f"{appender}.layout=org.apache.log4j.PatternLayout",
            f"{appender}.layout.ConversionPattern={LAYOUT}",
        ]
    for name, level, file in loggers:
        if name:
            lines.append(f"log4j.logger.{name}={level}, {file}")
            lines.append(f"log4j.additivity.{name}=false")
        else:
            lines.append(f"log4j.rootLogger={level}, {file}")
    return "\n".join(lines) + "\n"


def _log4j2(loggers: Loggers) -> str:
    files = sorted({file for _, _, file in loggers})
    lines = ["status=error"]
    for number, file in enumerate(files):
        appender = f"appender.a{number}"
        lines += [
            f"{appender}.type=RollingFile",
            f"{appender}.name={file}",
            f"{appender}.fileName=${{sys:kafka.logs.dir}}/{file}.log",
            f"{appender}.filePattern=${{sys:kafka.logs.dir}}/{file}.log.%d{{yyyy-MM-dd-HH}}",
            f"{appender}.layout.type=PatternLayout",
            f"{appender}.layout.pattern={LAYOUT}",
            f"{appender}.policies.type=Policies",
            f"{appender}.policies.time.type=TimeBasedTriggeringPolicy",
        ]
    for number, (name, level, file) in enumerate(loggers):
        if not name:
            lines += [f"rootLogger.level={level}", f"rootLogger.appenderRef.only.ref={file}"]
            continue
        logger = f"logger.l{number}"
        lines += [
            f"{logger}.name={name}",
            f"{logger}.level={level}",
            f"{logger}.additivity=false",
            f"{logger}.appenderRef.only.ref={file}",
        ]
    return "\n".join(lines) + "\n"
