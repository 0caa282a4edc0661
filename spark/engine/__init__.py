"""The Spark session, and tasks that run on it."""
