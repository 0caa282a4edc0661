"""`make demo-demand`: an HPA on lag and one on a promise, side by side on real parts with the same load."""
