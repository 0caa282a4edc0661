"""The adapter on brokers that answer as those of other makers and of older releases do."""
