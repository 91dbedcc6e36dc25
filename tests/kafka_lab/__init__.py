"""A laboratory: real Kafka clusters, real faults, and the truth to hold the product against."""
