"""What is measured: brokers, servers and the loads on them."""
