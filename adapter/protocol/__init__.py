"""Kafka's requests and responses as bytes and as columns."""
