"""Log lines as a fleet's shippers send them: out of their envelopes, laid out as logs again."""
