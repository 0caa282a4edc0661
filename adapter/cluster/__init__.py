"""What a Kafka cluster holds: topics, consumer groups and who coordinates them."""
