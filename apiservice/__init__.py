"""Serves consumer lag to Kubernetes as external metrics; knows no Kafka."""
