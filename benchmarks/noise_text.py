"""Makes a week of rotated logs in which almost nothing tells, of clusters of either era.

What is written is data in noise_lines.txt, told at random; the same seed gives the same bytes.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

BROKERS = (1, 2, 3)
HOURS = 168
STARTED = 1_794_787_200  # A Monday at midnight, UTC.
TOPICS, PARTITIONS_OF_TOPIC = 25, 4
_STARTS = {
    "zookeeper": (
        "INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController"
        "Registration$)",
        "INFO Cluster ID = MkU3OEVBNTcwNTJENDM2Qk (kafka.server.KafkaServer)",
        "INFO [KafkaServer id={broker}] started (kafka.server.KafkaServer)",
    ),
    "kraft": (
        "INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController"
        "Registration$)",
        "INFO [BrokerLifecycleManager id={broker}] Incarnation 9yoKkRyUTHqzyZcCuNIgDg of broker "
        "{broker} in cluster MkU3OEVBNTcwNTJENDM2Qk is now STARTING. "
        "(kafka.server.BrokerLifecycleManager)",
        "INFO [KafkaRaftServer nodeId={broker}] Kafka Server started "
        "(kafka.server.KafkaRaftServer)",
    ),
}


@dataclass(frozen=True)
class Noise:
    """One kind of noise. lines: messages with their level and logger."""

    name: str
    era: str
    weight: float
    lines: tuple[str, ...]


def kinds() -> tuple[Noise, ...]:
    """All of noise_lines.txt."""
    found: list[Noise] = []
    sections = Path(__file__).with_name("noise_lines.txt").read_text().split("\n\n")
    for head, *lines in (section.strip("\n").split("\n") for section in sections[1:]):
        name, era, weight = head.split()
        texts = tuple(line.replace("\\n", "\n").replace("\\t", "\t") for line in lines)
        found.append(Noise(name, era, float(weight), texts))
    return tuple(found)


class Writer:
    """One broker's log. Its lines come at such a pace that the size asked for fills the hour."""

    def __init__(self, broker: int, era: str, only: str | None = None, seed: int = 1) -> None:
        self.broker = broker
        self.era = era
        self._choose = random.Random(seed * 1000 + broker)
        told = [k for k in kinds() if (k.era in ("any", era) if only is None else k.name == only)]
        self._kinds = told
        self._weights = [k.weight for k in told]

    def start(self, at: float) -> str:
        """What the broker writes when it starts, as far as it matters here."""
        lines = (line.format(broker=self.broker) for line in _STARTS[self.era])
        return "".join(f"[{_stamp(at)}] {line}\n" for line in lines)

    def hour(self, begin: float, size: int) -> str:
        """An hour's lines, about size bytes."""
        choose, brokers = self._choose, [b for b in BROKERS if b != self.broker]
        pieces: list[str] = []
        done = 0
        while done < size:
            (kind,) = choose.choices(self._kinds, self._weights)
            at = begin + 3600 * min(done / size, 0.999)
            stamp = _stamp(at)
            number = choose.getrandbits(36)
            topic, partition = divmod(number % (TOPICS * PARTITIONS_OF_TOPIC), PARTITIONS_OF_TOPIC)
            values = {
                "broker": self.broker, "other": brokers[number & 1], "digit": number % 7,
                "small": 10 + number % 89, "number": number % 99_991, "offset": number >> 8,
                "hex": f"{number:014x}", "port": 32_768 + number % 28_000,
                "tp": f"orders-{topic}-{partition}", "time": stamp.replace(" ", "T"),
            }  # fmt: skip
            for line in kind.lines:
                text = line.format_map(values)
                text = f"{text[1:]}\n" if text.startswith("|") else f"[{stamp}] {text}\n"
                pieces.append(text)
                done += len(text)
        return "".join(pieces)


def write(folder: Path, size: int, era: str, only: str | None = None, hours: int = HOURS) -> int:
    """Writes about size bytes of logs below folder: a folder of each broker, a file of each hour.
    only: one kind of noise. Returns how many files there are."""
    count = 0
    for broker in BROKERS:
        writer = Writer(broker, era, only)
        place = folder / f"broker-{broker}" / "logs"
        place.mkdir(parents=True)
        for hour in range(hours):
            begin = STARTED + 3600.0 * hour
            text = writer.start(begin) if not hour else ""
            text += writer.hour(begin, size // hours // len(BROKERS))
            moment = datetime.fromtimestamp(begin, UTC)
            name = f"server.log.{moment:%Y-%m-%d-%H}" if hour < hours - 1 else "server.log"
            (place / name).write_text(text, encoding="utf-8")
            count += 1
    return count


def _stamp(at: float) -> str:
    """The time as Kafka's layout prints it."""
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
