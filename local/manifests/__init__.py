"""The rules that the shipped manifests have to keep."""
