"""Consumer groups and transactions across a loss: made logs, and a captured one."""
