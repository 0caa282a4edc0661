"""A real Kubernetes control plane on this machine, and a node that runs pods as processes."""
