"""What one read costs, from a known caller, among strangers, and through kube-apiserver."""
