"""What is wrong with a group: pure rules over numbers and columns, the same for live parts and reports."""
