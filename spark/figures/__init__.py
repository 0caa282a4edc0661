"""The figures of a group over time, as frozen values, and how people read them; advice and report share these."""
