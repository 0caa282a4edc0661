"""What reaches the brokers, and what a late or frozen one changes."""
