"""What real brokers did when `preflight`'s histories were performed, against what it says today."""

import json
import re
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from replication.foresight.failures import BY_NAME, FAILURES
from replication.foresight.moves import act
from replication.foresight.search import Bound, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, lost, start
from tests.kafka_lab.directed.__main__ import is_right, made, says
from tests.kafka_lab.directed.histories import Run, profiles, runs_of
from tests.kafka_lab.directed.outcome import Seen
from tests.kafka_lab.processes import free_ports, wait_for
from tests.kafka_lab.tap import FETCH, Tap

ROOT = Path(__file__).parents[3]
KEPT = [
    json.loads(line)
    for line in (ROOT / "tests" / "foresight" / "directed.jsonl").read_text().splitlines()
]
SMALLEST = "2 replicas, min ISR 1"


def settings_of(kept: dict[str, Any]) -> Settings:
    told = kept["settings"]
    return Settings(**{**told, "racks": tuple(told["racks"])})


@pytest.mark.parametrize("kept", KEPT, ids=lambda k: f"{k['kafka']}-{k['says']}-{k['cells'][0][1]}")
def test_the_machine_does_what_real_brokers_did(kept: dict[str, Any]) -> None:
    """The same commands: a CAN loses its kinds here as there, a CANNOT none of them at any step."""
    failure = BY_NAME[kept["cells"][0][1]]
    node = start(settings_of(kept), failure, 9, kept["leader"])
    seen = [set(lost(node))]
    for line in kept["lines"]:
        if kept["settings"]["flushed"]:
            # Power takes nothing of what was flushed.
            line = re.sub(r"kind=power to=\d+", "kind=process", line)
        node = act(node, (line,), "") or node
        seen.append(set(lost(node)))
    last = kept["attempts"][-1]
    assert kept["right"]
    assert last["right"]
    if kept["says"] == "CAN":
        assert set(kept["kinds"]) <= seen[-1] & set(last["lost_for_good"])
    else:
        assert not set(kept["kinds"]) & set().union(*seen, last["lost"], last["lost_for_good"])


@pytest.mark.parametrize(
    "release",
    sorted({kept["kafka"] for kept in KEPT if SMALLEST in {name for name, _, _ in kept["cells"]}}),
)
def test_preflight_says_of_two_replicas_what_was_tried(release: str) -> None:
    tried = {
        (failure, kind): kept["says"]
        for kept in KEPT
        for name, failure, kind in kept["cells"]
        if kept["kafka"] == release and name == SMALLEST
    }
    settings = profiles(release)[SMALLEST]
    found = {
        failure.name: search(settings, failure, Bound())
        for failure in FAILURES
        if failure.together != "rack"
    }
    assert tried == {
        (name, kind): "CAN" if kind in one.lost else "CANNOT"
        for name, one in found.items()
        for kind in KINDS
    }


@pytest.mark.parametrize("release", sorted({kept["kafka"] for kept in KEPT}))
def test_the_page_tells_what_was_realised(release: str) -> None:
    page = (ROOT / "docs" / "preflight.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {release} | "))
    told = [int(number) for number in re.findall(r"\d+", row.split("|", 2)[2])]
    can, cannot = (
        [kept for kept in KEPT if (kept["kafka"], kept["says"]) == (release, word)]
        for word in ("CAN", "CANNOT")
    )
    cells = [sum(len(kept["cells"]) for kept in of) for of in (can, cannot)]
    again = sum(len(kept["attempts"]) > 1 for kept in can)
    assert (told[0], *told[2:5], told[6]) == (cells[0], len(can), again, cells[1], len(cannot))


def test_a_can_needs_the_loss_to_last_and_a_cannot_is_broken_by_any() -> None:
    cells = [("p", "one_broker", "acks_all"), ("p", "one_broker", "read")]
    can = Run(profiles("4.3.0")[SMALLEST], (), 1, False, cells)
    cannot = Run(can.settings, (), 1, True, cells)
    both, one = ["acks_all", "read"], ["acks_all"]
    assert is_right(can, Seen(both, both))
    assert not is_right(can, Seen(both, one))
    assert not is_right(can, Seen(one, both))
    assert is_right(cannot, Seen(["acks_1"], ["committed"]))
    assert not is_right(cannot, Seen([], one))
    assert not is_right(cannot, Seen(one, []))


def test_a_tap_lets_one_request_of_one_client_pass() -> None:
    port, target = free_ports(2, seed=7)
    came: list[bytes] = []
    server = socket.create_server(("127.0.0.1", target))

    def take(one: socket.socket) -> None:
        while data := one.recv(64):
            came.append(data)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=take, args=(server.accept()[0],)).start()

    threading.Thread(target=serve, daemon=True).start()
    tap = Tap(port, target)
    tap.hold(FETCH, from_clients=("broker-1-", "broker-2-"))
    clients = {
        name: socket.create_connection(("127.0.0.1", port))
        for name in ("broker-1-f", "broker-2-f", "broker-12-f")
    }
    try:
        for name, client in clients.items():
            body = struct.pack(">hhih", FETCH, 4, 1, len(name)) + name.encode()
            client.sendall(struct.pack(">i", len(body)) + body)
        wait_for("both are held", lambda: tap.holds("broker-1-") and tap.holds("broker-2-"), 5)
        wait_for("the third passes", lambda: len(came) == 1 and b"broker-12-f" in came[0], 5)
        tap.let_one("broker-2-")
        wait_for("one passes", lambda: len(came) == 2 and b"broker-2-f" in came[1], 5)
        assert tap.holds("broker-1-")
        clients["broker-1-f"].close()
        wait_for("nobody waits for it", lambda: not tap.holds("broker-1-"), 5)
    finally:
        tap.close()
        server.close()


@pytest.mark.kafka
@pytest.mark.sweep
def test_a_can_is_realised_on_real_brokers() -> None:
    runs, _ = runs_of("4.3.0", (SMALLEST,))
    wanted = [r for r in runs if says(r) == "CAN" and (SMALLEST, "power_of_one", "read") in r.cells]
    assert len(wanted) == 1
    assert dict(made("4.3.0", wanted, None)) == {"CAN runs right": 1, "CAN cells right": 3}
