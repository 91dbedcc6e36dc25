"""ZooKeeper's own files: every leader and ISR that a cluster had before KRaft, from the source."""
