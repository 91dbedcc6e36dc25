"""Kafka replica events in, proven verdicts out: what each replica holds, what is lost, and why."""

# pyproject.toml reads it; the release that CHANGELOG.md calls Unreleased.
VERSION = "0.3.0.dev0"
