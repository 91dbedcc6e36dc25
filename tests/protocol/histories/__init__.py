"""The referee of histories: the machine, which knows what really happened."""
