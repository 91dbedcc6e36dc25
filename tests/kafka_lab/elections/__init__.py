"""Real elections: what `decide` foretells of each replica, against what real brokers then lose."""
