"""What must be true of the report's components, and of what they patch.

Each function is one rule and yields `file: what is wrong`."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from local.manifests.shipped import Manifest, Rule, Shipped, at

JOB = "report/cron-job-report.yaml"
CLAIM = "report/persistent-volume-claim-history.yaml"
COMPONENT = "report/kustomization.yaml"
BUCKET_JOB = "report-bucket/cron-job-report.yaml"
PLACES = {JOB: COMPONENT, BUCKET_JOB: "report-bucket/kustomization.yaml"}
"""Each CronJob, and its component."""
PATCH = "report/patch-deployment.yaml"
BUCKET_PATCH = "report-bucket/patch-deployment.yaml"
IMAGE = "kafka-lag-report"
"""The command that the image starts as well."""


def report_is_of_this_version(shipped: Shipped) -> Iterator[str]:
    for job, component in PLACES.items():
        for container in _containers(shipped, job):
            if container.get("image") != f"{IMAGE}:{shipped.version}":
                yield f"{job}: image must be {IMAGE}:{shipped.version}, as in pyproject.toml"
        images = {each.get("name"): each.get("newTag") for each in shipped.files.get(component, {}).get("images", [])}
        if images != {IMAGE: shipped.version}:
            yield f"{component}: images must give {IMAGE} the newTag {shipped.version}, as in pyproject.toml"


def report_is_no_adapter(shipped: Shipped) -> Iterator[str]:
    for job in PLACES:
        labels = at(shipped.objects.get(job), "spec.jobTemplate.spec.template.metadata.labels") or {}
        for name, service in shipped.of_kind("Service"):
            selector = at(service, "spec.selector") or {}
            if selector.items() <= labels.items():
                yield f"{job}: its pods would be chosen by {name}"


def report_reads_what_the_adapter_keeps(shipped: Shipped) -> Iterator[str]:
    claim = at(shipped.objects.get(CLAIM), "metadata.name")
    for file, pod in ((JOB, shipped.pods.get(JOB, {})), (PATCH, shipped.added(PATCH))):
        claims = [at(volume, "persistentVolumeClaim.claimName") for volume in pod.get("volumes", [])]
        if claim is None or claim not in claims:
            yield f"{file}: no volume is of the claim {claim}"
    kept = _mounts(shipped.added(PATCH))
    for container in _containers(shipped, JOB):
        flags = dict(argument.split("=", 1) for argument in container.get("args", []) if "=" in argument)
        for flag in ("--history", "--output"):
            if flag in flags and not any(PurePosixPath(flags[flag]).is_relative_to(mount) for mount in kept):
                yield f"{JOB}: {flag} {flags[flag]} does not lie where the adapter has the volume"
        if not kept <= _mounts(container):
            yield f"{JOB}: {container.get('name')} must mount the history at {sorted(kept)}, as the adapter does"


def report_in_a_bucket_has_the_adapter_s_environment(shipped: Shipped) -> Iterator[str]:
    patched = shipped.added(BUCKET_PATCH)
    account = shipped.pod.get("serviceAccountName")
    if shipped.pods.get(BUCKET_JOB, {}).get("serviceAccountName") != account:
        yield f"{BUCKET_JOB}: serviceAccountName must be {account}, as the adapter's"
    for container in _containers(shipped, BUCKET_JOB):
        for key in ("env", "envFrom"):
            if container.get(key) != patched.get(key):
                yield f"{BUCKET_JOB}: {key} of {container.get('name')} must be what the adapter gets"


def _containers(shipped: Shipped, job: str) -> list[Manifest]:
    pod = shipped.pods.get(job, {})
    return [*pod.get("initContainers", []), *(pod.get("containers") or [{}])]


def _mounts(container: Manifest) -> set[str]:
    return {mount.get("mountPath", "") for mount in container.get("volumeMounts", [])}


RULES: tuple[Rule, ...] = (
    report_is_of_this_version,
    report_is_no_adapter,
    report_reads_what_the_adapter_keeps,
    report_in_a_bucket_has_the_adapter_s_environment,
)
