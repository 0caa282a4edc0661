"""Rules that find incidents in what a group's samples show, each with its beginning and its end."""
