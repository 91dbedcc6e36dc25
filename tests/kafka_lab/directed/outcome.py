"""What came of a run: what producers were told, what was read, and which kinds are lost."""

from dataclasses import dataclass, field

from tests.kafka_lab.producer import AcknowledgementLog


class Answers(AcknowledgementLog):
    """What producers were told. acked: how each record was asked for that was answered."""

    acked: dict[str, str]

    def write(self, **fields: object) -> None:
        super().write(**fields)
        if fields["status"] == "acked":
            self.acked[str(fields["payload_id"])] = str(fields["acks"])


@dataclass
class Seen:
    """What came of a run. lost, lost_for_good: kinds whose records the leader lacks right after
    the last command, and once all are back; strayed: where the cluster was not as foretold."""

    lost: list[str] = field(default_factory=list)
    lost_for_good: list[str] = field(default_factory=list)
    strayed: list[str] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    seconds: float = 0.0
