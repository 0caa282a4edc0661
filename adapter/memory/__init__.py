"""What is remembered of groups between two collectors and between two processes, because Kafka no longer reports it."""
