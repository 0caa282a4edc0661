"""The other server of external metrics, to which reads of metrics that are not ours are passed on."""
