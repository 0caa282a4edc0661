"""Schemas of requests that the Kafka client library lacks."""
