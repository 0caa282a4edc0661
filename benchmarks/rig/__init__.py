"""What is measured: brokers, servers and their load."""
