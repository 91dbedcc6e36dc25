"""Evidence: what an operator copied from brokers and clients, read into events.

One file per family of artefacts. Every reader streams with bounded memory and answers either what
it found or an `Unreadable` that says which file, where in it, and why; none raises on bad input.
Kafka's own -1 for "absent" stops here: what leaves this package says None.
"""
