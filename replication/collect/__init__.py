"""The command `collect`: how evidence is collected on each platform, and what a gap in it costs."""
