"""What differs between the Kafka versions of the laboratory, as far as the laboratory must know."""

from dataclasses import dataclass

from replication.paths import kafka_broker_jars

SUPPORTED = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0")

# Besides, for the commands of `decide` alone.
FOR_COMMANDS = ("2.3.1", "3.6.2")


@dataclass(frozen=True)
class Version:
    """One Kafka version by its name, such as "1.1.1"; with_zookeeper: also where it need not be."""

    name: str
    with_zookeeper: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.name.split("."))

    def at_least(self, *numbers: int) -> bool:
        return self.numbers >= numbers

    @property
    def kraft(self) -> bool:
        """Whether the laboratory runs it without ZooKeeper."""
        return self.at_least(3, 3) and not self.with_zookeeper

    @property
    def magic(self) -> int:
        return 2 if self.at_least(0, 11) else 1

    @property
    def class_path(self) -> str:
        return ":".join(str(jar) for jar in kafka_broker_jars(self.name))

    @property
    def dump_tool(self) -> str:
        """The class behind kafka-dump-log."""
        moved = self.at_least(4, 2)
        return "org.apache.kafka.tools.DumpLogSegments" if moved else "kafka.tools.DumpLogSegments"

    @property
    def log4j2(self) -> bool:
        return self.at_least(4, 0)

    @property
    def metadata_api(self) -> int:
        """The newest Metadata version that this broker and the laboratory both speak."""
        if self.at_least(2, 8):
            return 10
        return 5 if self.at_least(1, 0) else 2

    @property
    def produce_api(self) -> int:
        return 3 if self.magic == 2 else 2

    @property
    def create_topics_api(self) -> int:
        return 2 if self.at_least(1, 0) else 1
