"""What a drill asks of the cluster: is it there, are the topics, how does it describe them."""

import importlib
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replication.drill.plan import Plan, Topic
from replication.nearest import did_you_mean
from replication.recovery.connecting import said

SECONDS = 15.0
# For what only adds to the evidence.
DETAIL_SECONDS = 5.0
_SET_ON_THE_TOPIC = 1


class NoDrill(ValueError):
    """The drill cannot be made, or go on; the text says why, and what to do."""


class DrilledCluster:
    """The cluster at the plan's bootstrap servers. library: confluent_kafka."""

    def __init__(self, library: Any, plan: Plan, settings: Iterable[tuple[str, str]]) -> None:
        self.plan = plan
        self._library = library
        self.settings = {
            **dict(settings),
            "bootstrap.servers": plan.bootstrap,
            # What goes wrong is said once, by whoever asked.
            "log_level": "0",
            "error_cb": self._note,
        }
        self._last_error = ""
        self._admin_library = importlib.import_module("confluent_kafka.admin")
        try:
            self._admin = self._admin_library.AdminClient({**self.settings})
        except library.KafkaException as error:
            raise NoDrill(f"client settings: {said(error)}") from None

    def _note(self, error: Any) -> None:
        self._last_error = str(error.str())

    def check(self) -> list[str]:
        """What the drill finds, as lines; nothing is changed. Raises NoDrill."""
        known = self._known()
        brokers = len(known.brokers)
        names = ", ".join(map(str, sorted(known.brokers)))
        lines = [f"cluster: {brokers} brokers ({names}) at {self.plan.bootstrap}"]
        for topic in self.plan.topics:
            there = topic.name in known.topics and known.topics[topic.name].error is None
            if topic.create and there:
                raise NoDrill(
                    f"topic {topic.name} is there already: choose another name, or say "
                    "create = false and the drill writes to it as it is"
                )
            if topic.create and topic.replication > brokers:
                raise NoDrill(
                    f"topic {topic.name}: replication = {topic.replication}, and the cluster has "
                    f"{brokers} brokers"
                )
            if not topic.create and not there:
                near = did_you_mean(topic.name, known.topics)
                raise NoDrill(
                    f"no topic {topic.name} in the cluster{near}: with create = true the drill "
                    "makes it"
                )
            lines.append(f"topic {topic.name}: {_words(topic, known)}")
        return lines

    def create(self) -> None:
        """The topics that are to be made; returns when each of their partitions has a leader.
        Raises NoDrill."""
        wanted = [topic for topic in self.plan.topics if topic.create]
        if not wanted:
            return
        made = self._admin.create_topics(
            [
                self._admin_library.NewTopic(
                    topic.name, topic.partitions, topic.replication, config=dict(topic.settings)
                )
                for topic in wanted
            ],
            operation_timeout=SECONDS,
        )
        for name, future in made.items():
            try:
                future.result(2 * SECONDS)
            except (self._library.KafkaException, TimeoutError) as error:
                raise NoDrill(f"topic {name} was not created: {said(error)}") from None
        end = time.monotonic() + 2 * SECONDS
        while not self._all_lead({topic.name: topic.partitions for topic in wanted}):
            if time.monotonic() > end:
                raise NoDrill("the new topics have no leaders: is the cluster well?")
            time.sleep(0.3)

    def _all_lead(self, wanted: dict[str, int]) -> bool:
        known = self._known()
        return all(
            name in known.topics
            and len(known.topics[name].partitions) == count
            and all(p.leader >= 0 for p in known.topics[name].partitions.values())
            for name, count in wanted.items()
        )

    def _known(self) -> Any:
        try:
            return self._admin.list_topics(timeout=SECONDS)
        except self._library.KafkaException as error:
            self._admin.poll(0)
            why = self._last_error or said(error)
            raise NoDrill(
                f"bootstrap {self.plan.bootstrap}: no broker answers within {SECONDS:.0f} s "
                f"({why}). Is the address right, does this machine reach it, and do the security "
                "settings (client_config) fit?"
            ) from None

    def describe(self, path: Path) -> bool:
        """Appends what the cluster tells of the drill's topics now, as `kafka-topics --describe`
        prints it, with the time before it. Whether the cluster told."""
        try:
            lines = list(self._described())
        except NoDrill:
            return False
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with path.open("a", encoding="utf-8") as file:
            file.write("\n".join([f"# {at}", *lines]) + "\n")
        return True

    def _described(self) -> Iterator[str]:
        known = self._known()
        for topic in self.plan.topics:
            found = known.topics.get(topic.name)
            if found is None or found.error is not None:
                continue
            numbers = sorted(found.partitions)
            factor = max((len(p.replicas) for p in found.partitions.values()), default=0)
            topic_id = self._topic_id(topic.name)
            named = "" if topic_id is None else f"\tTopicId: {topic_id}"
            settings = ",".join(f"{k}={v}" for k, v in sorted(self._configs(topic.name).items()))
            yield (
                f"Topic: {topic.name}{named}\tPartitionCount: {len(numbers)}"
                f"\tReplicationFactor: {factor}\tConfigs: {settings}"
            )
            for number in numbers:
                one = found.partitions[number]
                leader = one.leader if one.leader >= 0 else "none"
                yield (
                    f"\tTopic: {topic.name}\tPartition: {number}\tLeader: {leader}"
                    f"\tReplicas: {','.join(map(str, one.replicas))}"
                    f"\tIsr: {','.join(map(str, one.isrs))}"
                )

    def _topic_id(self, name: str) -> str | None:
        """None where the cluster has no topic ids, or does not tell."""
        asked = self._library.TopicCollection([name])
        try:
            told = self._admin.describe_topics(asked, request_timeout=DETAIL_SECONDS)[name].result(
                DETAIL_SECONDS
            )
        except (self._library.KafkaException, TimeoutError):
            return None
        # The library writes it in base64's other alphabet than Kafka.
        found = str(told.topic_id or "").translate(str.maketrans("+/", "-_"))
        return found if len(found) == 22 and set(found) != {"A"} else None

    def _configs(self, name: str) -> dict[str, str]:
        """What is set on the topic itself; nothing where the cluster does not tell."""
        asked = self._admin_library.ConfigResource(
            self._admin_library.ConfigResource.Type.TOPIC, name
        )
        try:
            (future,) = self._admin.describe_configs(
                [asked], request_timeout=DETAIL_SECONDS
            ).values()
            told = future.result(DETAIL_SECONDS)
        except (self._library.KafkaException, TimeoutError):
            return {}
        return {k: e.value for k, e in told.items() if int(e.source) == _SET_ON_THE_TOPIC}


def _words(topic: Topic, known: Any) -> str:
    if not topic.create:
        return f"is there, {len(known.topics[topic.name].partitions)} partitions"
    settings = "".join(f", {k}={v}" for k, v in sorted(topic.settings.items()))
    return f"to be created, {topic.partitions} partitions, {topic.replication} replicas{settings}"
