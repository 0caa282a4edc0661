"""The client of Kafka brokers; only this package imports kafka."""
