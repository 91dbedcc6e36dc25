"""Kafka's messages: layouts out of jars, bytes of Kafka's own classes, one reader beside them."""
