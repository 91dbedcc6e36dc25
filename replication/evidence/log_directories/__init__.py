"""Log directories and digests of them: segments, checkpoint files, records and their payloads."""
