"""What the tables of a history hold, and how they are read."""
