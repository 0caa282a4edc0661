"""The cost of writing, compacting and reporting the history."""
