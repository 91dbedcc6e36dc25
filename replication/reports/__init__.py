"""From answers to words and pages, for people."""
