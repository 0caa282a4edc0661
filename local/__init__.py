"""Real parts on one machine: Kafka, a Kubernetes control plane, an S3 server and Spark."""
