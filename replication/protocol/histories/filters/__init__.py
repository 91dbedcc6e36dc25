"""Filters read evidence: which histories a partition's story admits, offset by offset."""
