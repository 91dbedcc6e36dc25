"""Whether two replicas or messages speak of the same incarnation of a topic."""


def topic_identity(known_topic_id: str, topic_id: str) -> str:
    """Decides same, different or unknown ("" stands for no topic id).

    Shown by topic_created_again.txt.

    Versions: topic ids exist from 2.8 (KIP-516) and always in KRaft. Without them a leader epoch
    that falls back to 0 is a topic created again.
    Followed: the name. Gave way to: nothing. What is keyed by name never crosses an incarnation.
    Leaves unchanged: everything: differing incarnations are not compared.
    Unknown: nothing.
    """
    if not known_topic_id or not topic_id:
        return "unknown"
    return "same" if known_topic_id == topic_id else "different"
