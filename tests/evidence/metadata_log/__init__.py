"""Tests of the steps from the metadata log to its history, each alone."""
