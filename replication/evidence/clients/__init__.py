"""What producers and consumers wrote down themselves."""
