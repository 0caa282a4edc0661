"""The cost of a read: by a known caller, among strangers, and through kube-apiserver."""
