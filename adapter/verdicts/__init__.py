"""What is wrong with a group: pure rules over numbers and columns, without Spark and without Kafka."""
