"""Each kind of event's one step of the state, by who acts: the functions that fold.py calls."""
