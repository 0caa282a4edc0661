"""Reads consumer lag from Kafka brokers; knows no HTTP."""
