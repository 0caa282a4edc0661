"""The contents of a Kafka cluster: topics, consumer groups and their coordinators."""
