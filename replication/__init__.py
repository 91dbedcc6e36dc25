"""Kafka replica events in, proven verdicts out: what each replica holds, what is lost, and why."""
