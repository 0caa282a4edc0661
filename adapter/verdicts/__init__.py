"""What is true of a group: pure rules over numbers and columns, without Spark and without Kafka. The reports use all of
them; nothing that is served uses `simulation`."""
