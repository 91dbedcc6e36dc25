"""Tests of the rooms where verdicts are reached."""
