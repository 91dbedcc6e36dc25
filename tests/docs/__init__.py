"""What docs/ says, held against the code."""
