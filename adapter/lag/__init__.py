"""Pure functions over columns: the state and the lag of every partition."""
