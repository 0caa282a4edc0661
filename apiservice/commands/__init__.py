"""The commands that show what they find, each in a file of its own."""
