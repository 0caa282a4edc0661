"""What `doctor` checks: each check's code, and how what was gathered decides its outcome. Nothing here asks anybody."""
