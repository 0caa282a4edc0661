"""The only door to the Kafka client library: connections, requests and their failures."""
