"""`preflight` against real brokers: each CAN is made to happen, each CANNOT is tried."""
