"""A real S3 server on this machine."""
