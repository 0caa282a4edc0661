"""The Kubernetes API server: the only `import kubernetes`."""
