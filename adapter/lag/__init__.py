"""Pure functions over columns that compute the state and lag of every partition."""
