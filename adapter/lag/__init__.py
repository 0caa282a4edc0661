"""Functions over columns that compute the state and lag of every partition, by the rules of the settings."""
