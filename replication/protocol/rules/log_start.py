"""How far records may be removed from the front of a log."""


def log_start(requested: int | None, current: int, high_watermark: int) -> int | str:
    """Decides the log start after deleteRecords or retention asks for it, or the error.

    requested None: up to the high watermark (deleteRecords with -1).

    Shown by s14_log_start.txt.

    Versions: deleteRecords from 0.11 (KIP-107).
    Followed: nothing. Gave way to: nothing. Only committed records can be removed, so removal is
    never loss; the epoch cache is trimmed to the new start.
    Leaves unchanged: the log end and the high watermark; followers, until their next fetch.
    Unknown: nothing.
    """
    wanted = high_watermark if requested is None else requested
    if wanted > high_watermark:
        return "OFFSET_OUT_OF_RANGE"
    return max(current, wanted)


def log_start_of_follower(answered: int, current: int, high_watermark: int) -> int:
    """A follower's log start after a response: the leader's, within its own high watermark."""
    return max(current, min(answered, high_watermark))
