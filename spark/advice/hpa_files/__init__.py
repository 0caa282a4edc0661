"""The file of a recommended HPA, with the adapter's settings that it needs."""
