"""How benchmarks measure, and how they show figures."""
