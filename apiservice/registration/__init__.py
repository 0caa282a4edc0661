"""The adapter's place in the cluster: the APIService that leads to it, and the certificates in its Secret."""
