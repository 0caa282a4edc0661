"""The installed command, changed for a busy machine: what `python -c` runs in its place."""

PATIENT_CALLS = (
    "from apiservice.cluster_api import connection; "
    "connection.CALL_SECONDS = connection.send.__kwdefaults__['timeout_seconds'] = 10.0; "
)
"""Waits longer for kube-apiserver to say who may read than a busy one takes. The product refuses the read after 3 s."""
MAIN = "from apiservice.__main__ import main; main()"
