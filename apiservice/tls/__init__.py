"""The serving certificate: its files, its reload, and certificates made here."""
