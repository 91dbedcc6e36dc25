"""What Kafka's own command line tools printed."""
