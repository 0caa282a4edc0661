"""Requests to the brokers, and the effects of a late or frozen broker."""
