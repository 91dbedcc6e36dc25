"""Tests of the steps between artefacts and events, each alone."""
