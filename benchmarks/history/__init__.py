"""What writing, compacting and reporting the history costs."""
