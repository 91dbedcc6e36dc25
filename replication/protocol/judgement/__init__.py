"""State into verdicts: the promises, what survived, the ledger of losses, causes, divergence."""
