"""The settings file: its models, its types, and all of its problems at once."""
