"""A while in which no broker is ZooKeeper's controller: who dies and comes back then is not seen.

Up to 2.1 a controller that reads the brokers' registrations late sees no difference where a broker
has a new one by then. How late it reads them nobody outside can set; that none is there, this does.
"""

import time

from tests.kafka_lab.cluster import Cluster

CONTROLLER = "/controller"
# No broker has this number: all of them take another one for the controller.
ANOTHER = {"version": 1, "brokerid": 99, "timestamp": "0"}


class NobodyControls:
    """Between begin and end each broker takes another one for the controller."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.lasts = cluster, False

    def begin(self) -> None:
        """Ends the present controller's time."""
        with self.cluster.zookeeper() as asked:
            asked.delete(CONTROLLER)
            while not asked.create(CONTROLLER, ANOTHER):
                asked.delete(CONTROLLER)
        self.lasts = True
        # Who was the controller hears of it, and leaves off.
        time.sleep(0.5)

    def end(self) -> None:
        """One of the brokers becomes the controller, and reads what there is."""
        if self.lasts:
            with self.cluster.zookeeper() as asked:
                asked.delete(CONTROLLER)
            self.lasts = False
