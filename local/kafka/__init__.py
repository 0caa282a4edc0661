"""A real Kafka on this machine, its clients, and parts that can be delayed or secured."""
