"""The installed command, changed for a busy machine: what `python -c` runs in its place."""

PATIENT_CALLS = (
    "from apiservice.cluster_api import connection; "
    "connection.CALL_SECONDS = connection.send.__kwdefaults__['timeout_seconds'] = 10.0; "
)
"""Waits longer for kube-apiserver to say who may read than a busy one takes. The product refuses the read after 3 s."""
PATIENT_LEASE = (
    "from apiservice.cluster_api import lease; "
    "lease.DURATION_SECONDS, lease.DEADLINE_SECONDS, lease.RETRY_SECONDS = 20.0, 15.0, 0.3; "
)
"""A Lease that lasts longer than that of the product, which is 15 s, and that others try to take more often."""
MAIN = "from apiservice.__main__ import main; main()"
