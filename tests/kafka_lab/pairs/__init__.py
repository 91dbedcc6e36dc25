"""Pairs of real runs of one fault script, with and without a change: `whatif` against the truth."""
