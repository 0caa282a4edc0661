"""The serving certificate: loading, reloading and issuing."""
