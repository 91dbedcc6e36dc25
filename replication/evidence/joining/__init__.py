"""From artefacts to events: identity, copies, placement in time, causal order.

Readers never import this room.
"""
