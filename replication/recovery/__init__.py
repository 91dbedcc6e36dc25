"""The records back, and what became of each: from the loss ledger to bytes, keys and consumers."""
