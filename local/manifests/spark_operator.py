"""What must be true of the component for the Kubeflow Spark operator, beyond its kinds' own definitions, which the
end-to-end tests check with a kube-apiserver.

Each function is one rule and yields `file: what is wrong`."""

from collections.abc import Iterator

from local.manifests.shipped import Rule, Shipped, at

IMAGE = "kafka-lag-report-cluster"
KIND = "ScheduledSparkApplication"
MAIN = "local:///opt/kafka-lag-report/spark/__main__.py"


def applications_are_of_this_version(shipped: Shipped) -> Iterator[str]:
    for file, found in shipped.of_kind(KIND):
        wanted = {
            "spec.template.image": f"{IMAGE}:{shipped.version}",
            "spec.template.mainApplicationFile": MAIN,
            "spec.template.type": "Python",
            "spec.concurrencyPolicy": "Forbid",
        }
        yield from (f"{file}: {path} must be {value}" for path, value in wanted.items() if at(found, path) != value)


def applications_read_one_history(shipped: Shipped) -> Iterator[str]:
    given = {file: at(found, "spec.template.arguments") or [] for file, found in shipped.of_kind(KIND)}
    locations = {word for arguments in given.values() for word in arguments if word.startswith("--history=")}
    if len(locations) != 1:
        yield f"{' and '.join(given)}: --history must be the same, is {sorted(locations)}"


def applications_are_no_adapter(shipped: Shipped) -> Iterator[str]:
    services = {name: at(found, "spec.selector") or {} for name, found in shipped.of_kind("Service")}
    for file, found in shipped.of_kind(KIND):
        for role in ("driver", "executor"):
            labels = at(found, f"spec.template.{role}.labels") or {}
            for name, selector in services.items():
                if selector.items() <= labels.items():
                    yield f"{file}: its {role}'s pods would be chosen by {name}"


def mounted_volumes_are_there(shipped: Shipped) -> Iterator[str]:
    for file, found in shipped.of_kind(KIND):
        volumes = {volume.get("name") for volume in at(found, "spec.template.volumes") or []}
        for role in ("driver", "executor"):
            for mount in at(found, f"spec.template.{role}.volumeMounts") or []:
                if mount.get("name") not in volumes:
                    yield f"{file}: {role} mounts {mount.get('name')}, which is no volume"
        claims = {at(volume, "persistentVolumeClaim.claimName") for volume in at(found, "spec.template.volumes") or []}
        for claim in claims - {None} - shipped.names("PersistentVolumeClaim"):
            yield f"{file}: the claim {claim} is not there"


RULES: tuple[Rule, ...] = (
    applications_are_of_this_version,
    applications_read_one_history,
    applications_are_no_adapter,
    mounted_volumes_are_there,
)
