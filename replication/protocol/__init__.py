"""The protocol core: events in, the state of a topic partition, verdicts out. Standard library only."""
