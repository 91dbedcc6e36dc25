"""Who was hurt by a loss: consumer groups and transactions, by the coordinators' own records."""
