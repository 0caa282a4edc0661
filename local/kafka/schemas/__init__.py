"""Forms of requests that the client library lacks, as Kafka's own message definitions have them."""
