"""Every check that there is. Each code has a page of its name in docs/codes."""

from collections.abc import Iterator

from apiservice.doctor.check import Category, Check, Code, failed, skipped

SETTINGS = Code(
    "KLA101",
    "the settings and the files that they name can be used",
    "Correct each place that is named; `kafka-lag-adapter validate` reports the same.",
)

NAMES = Code(
    "KLA201",
    "host names of bootstrap servers resolve",
    "Correct `bootstrapServers`, or the DNS of the place where this command runs.",
)
PORTS = Code(
    "KLA202",
    "bootstrap servers accept connections",
    "See whether the broker runs, whether the port is that of a listener, and whether a firewall or NetworkPolicy is "
    "in the way.",
)
TLS = Code(
    "KLA203",
    "TLS certificates are accepted on both sides",
    "Set `caFile` to the CA of the listener's certificate, and `certFile` and `keyFile` where it asks for one.",
)
LOGIN = Code(
    "KLA204",
    "the login is accepted",
    "Correct `mechanism`, the user's name and the content of `passwordFile`, or create the user.",
)
ANSWERS = Code(
    "KLA205",
    "bootstrap servers answer Kafka's requests",
    "See whether `protocol` is that of the listener, and whether the broker hangs.",
)
OFFERED = Code(
    "KLA206",
    "brokers offer the requests that are needed",
    "Upgrade the broker: Kafka 2.4 is the oldest release that is supported.",
)
ADVERTISED = Code(
    "KLA207",
    "every broker can be reached at the address that it advertises",
    "See whether the broker runs; correct its `advertised.listeners`, or make that address reachable from here.",
)
QUIRKS = Code(
    "KLA208",
    "brokers have no quirks that cost accuracy or time",
    "Nothing is wrong; a newer release of the broker removes the limit.",
)

RIGHTS = Code(
    "KLA301",
    "the login may describe what is named",
    "Give the user the missing ACL: docs/kafka-security.md, The least ACLs.",
)
GROUPS = Code(
    "KLA302",
    "the groups that are named exist",
    "Compare the name in the rule, metric or HPA with the `group.id` of the consumers.",
)
TOPICS = Code(
    "KLA303",
    "the topics that are named exist",
    "Compare the name in the rule, metric or HPA with the topic that the consumers read.",
)
LAG = Code(
    "KLA304",
    "the lag of the groups that are named is known",
    "See the message below 503 in docs/troubleshooting.md.",
)
STALE = Code(
    "KLA305",
    "every topic with commits of these groups is still read",
    "If the topic should be read, correct the consumers; if not, delete the group's offsets for it.",
)
READ = Code(
    "KLA306",
    "somebody reads the messages that wait",
    "Look at the consumers: their pods, their logs, and what `kafka-lag-adapter explain` shows of the group.",
)

CLUSTER = Code(
    "KLA401",
    "kube-apiserver can be reached",
    "Give a kubeconfig whose server, CA and user are right with `--kubeconfig`.",
)
HOLDER = Code(
    "KLA402",
    "the APIServices that the settings register lead to this adapter",
    "Install the adapter, or decide which server is to have it: docs/install.md, Beside another server.",
)
AUTHORITY = Code(
    "KLA403",
    "kube-apiserver accepts the adapter's certificate",
    "Remove the APIService's `caBundle`, so that the adapter writes it, or set it to the CA of its certificate.",
)
REACHED = Code(
    "KLA404",
    "kube-apiserver reaches the adapter",
    "See whether the pods are ready, and whether a NetworkPolicy or firewall is between kube-apiserver and them.",
)
FRONT_PROXY = Code(
    "KLA405",
    "kube-apiserver has a front proxy, which the adapter can recognise",
    "Set kube-apiserver's flags `--requestheader-…` and `--proxy-client-…`, the former with the CA of the latter.",
)
HPA_READS = Code(
    "KLA406",
    "the HPA controller may read the metrics that the settings register",
    "Apply the manifests again. Custom metrics need the component custom-metrics, or customMetrics in the chart.",
)
INSTALLS = Code(
    "KLA407",
    "the user may create what an installation needs",
    "Install as a user with these rights, or have an administrator install the adapter.",
)
GATE = Code(
    "KLA408",
    "HPAs may scale to zero by themselves",
    "Use the adapter's activator (docs/scale-to-zero.md), or switch the feature gate HPAScaleToZero on.",
)
READY = Code(
    "KLA409",
    "every pod of the adapter is ready, and nothing limits it",
    "See the condition in docs/troubleshooting.md, and the adapter's log, which has the details.",
)

HPA = Code(
    "KLA501",
    "the HPA exists and reads a metric of this adapter",
    "Correct the name and namespace, or the name of the metric: docs/metrics.md lists them.",
)
VALUE = Code(
    "KLA502",
    "its metric has a value through kube-apiserver",
    "See the message in docs/troubleshooting.md; 404 means a wrong name, 503 that the lag is not known now.",
)
CONDITIONS = Code(
    "KLA503",
    "its conditions are good",
    "See the condition's reason in docs/troubleshooting.md; at the maximum, raise `maxReplicas`.",
)
VALUE_TARGET = Code(
    "KLA504",
    "it compares a lag with `AverageValue`",
    "Use `type: AverageValue`: with `Value`, the HPA multiplies the replicas again and again while the lag falls.",
)
MOST_REPLICAS = Code(
    "KLA505",
    "every replica up to `maxReplicas` can have a partition",
    "Lower `maxReplicas`, add partitions, or let it follow them: docs/max-replicas.md.",
)
RIVALS = Code(
    "KLA506",
    "nothing else scales its target",
    "Delete one of the two; two scalers overrule each other without end.",
)
CADENCE = Code(
    "KLA507",
    "the consumers commit more often than a target's worth of work takes",
    "Let the consumers commit more often, or raise the target.",
)
SURGE = Code(
    "KLA508",
    "a rolling update does not raise the replicas",
    "Raise `maxSurge` above the tolerance, set it to 0, or set `behavior.scaleDown.tolerance` to 0.",
)
ZERO = Code(
    "KLA509",
    "scaling to zero is done as the HPA asks for it",
    "Allow it in the settings, or correct what is named: docs/scale-to-zero.md.",
)

_ALL = (value for value in vars().copy().values() if isinstance(value, Code))
CODES = tuple(sorted(_ALL, key=lambda code: code.name))


def skipped_all(category: Category, why: str, subject: str = "", besides: Code | None = None) -> Iterator[Check]:
    """Yields all checks of a category, but for one, as skipped."""
    yield from (skipped(code, subject, why) for code in CODES if code.category is category and code is not besides)


def failed_all(broken: Code, subject: str, problem: str) -> Iterator[Check]:
    """Yields the failed check, and all others of its category as skipped, because they need it."""
    yield failed(broken, subject, problem)
    yield from skipped_all(broken.category, f"{broken.name} failed", subject, besides=broken)
