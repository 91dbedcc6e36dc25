"""Messages in Kafka's own description language: layouts as data, and one reader for all of them."""
