"""What one collection cycle costs."""
