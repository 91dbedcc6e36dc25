"""What now: what each choice of a leader costs, which to take, and in which steps."""
