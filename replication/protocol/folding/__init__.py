"""Events into state: the order of a trace, each step of the state, and its small encoding."""
