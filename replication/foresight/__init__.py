"""Before it happens, and what if it had been otherwise: losses that settings allow or prevent."""
