"""The rules for the shipped manifests."""
