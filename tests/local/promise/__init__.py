"""The run of an HPA on lag and one on a promise: its figures, its prediction and its picture."""
