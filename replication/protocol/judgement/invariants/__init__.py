"""One file is one promise: each `judge(view)` decides one invariant of one topic partition."""
