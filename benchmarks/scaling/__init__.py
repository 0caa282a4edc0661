"""Compares ways to scale consumers on loads of many shapes, in the simulator that the reports use."""
