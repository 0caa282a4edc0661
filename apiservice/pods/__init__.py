"""The pods of the namespaces in which HPAs have Pods metrics, and which members of a group run in them."""
