"""Whether a leader appends a batch of an idempotent producer."""


def producer_sequence(
    producer_epoch: int,
    first_sequence: int,
    last_sequence: int,
    known: tuple[int, int] | None,
    *,
    recent: frozenset[tuple[int, int]] = frozenset(),
) -> str:
    """Decides append, duplicate, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_PRODUCER_EPOCH.

    known: the producer epoch and last sequence of the newest batch in the log, None without one.
    recent: (first, last) sequences of the producer's last five batches. A duplicate is answered
    with its first append's offset and not written again.

    Shown by producer_retry.txt and producer_sequence_boundaries.txt.

    Versions: idempotence from 0.11 (KIP-98), the default from 3.0 (KIP-679). Sequences wrap after
    2^31 - 1.
    Followed: writing every retry. Gave way to: nothing. A duplicate found in a log is a retry of
    a producer that is not idempotent, or one that restarted.
    Leaves unchanged: the log, unless the answer is append.
    Unknown: nothing.
    """
    if known is None:
        return "append"
    known_epoch, known_last_sequence = known
    if producer_epoch < known_epoch:
        return "INVALID_PRODUCER_EPOCH"
    if producer_epoch > known_epoch:
        return "append" if first_sequence == 0 else "OUT_OF_ORDER_SEQUENCE_NUMBER"
    if (first_sequence, last_sequence) in recent:
        return "duplicate"
    expected = 0 if known_last_sequence == 2**31 - 1 else known_last_sequence + 1
    return "append" if first_sequence == expected else "OUT_OF_ORDER_SEQUENCE_NUMBER"
