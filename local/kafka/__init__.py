"""A real Kafka on this machine, its clients, and what can be made late or secure about it."""
