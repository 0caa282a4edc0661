"""The settings file: models, types and validation."""
