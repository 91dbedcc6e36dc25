"""Evidence: what an operator copied from brokers and clients, read into events.

One room per kind of artefact; collecting finds them, joining makes events of what they say.
Every reader streams with bounded memory and answers either what it found or an `Unreadable` that
says which file, where in it, and why; none raises on bad input.
Kafka's own -1 for "absent" stops here: what leaves this package says None.
"""
