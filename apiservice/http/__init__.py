"""What any HTTP API needs: listeners and their limits, requests' headers and queries, errors and replies, health."""
