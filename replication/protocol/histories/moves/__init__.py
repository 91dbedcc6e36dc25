"""Moves are what the release's rules allow, at one offset: what an actor may do unseen."""
