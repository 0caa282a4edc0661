"""What the figures of a group mean: capacity, findings and the recommended HPA."""
