"""How things are measured, and how the figures are shown."""
