"""The metadata log of a KRaft cluster: its records and the history that they tell."""
