"""Pure: HPAs on a number of replicas that the adapter computes: by a promise about waiting, or by the lag.

Each needs a rule in the adapter's settings, which is a part of what is recommended."""

import math
from dataclasses import replace
from decimal import ROUND_DOWN, Context

from adapter.verdicts.controllers import DEFAULT_FLAGS
from spark.advice.capacity_words import advised_in_words
from spark.advice.hpa import Draft
from spark.advice.recommendation import LagPerReplica, Number, Promise, Recommendation, Target
from spark.figures import formatting

WINDOW_SECONDS = 120
"""For scaling down by a number of replicas that itself falls only if it need not rise again soon."""
LONGEST_WAIT_SECONDS = 86_400
SMALLEST_HINT = 0.001
"""These two are limits of the adapter's settings, as is a second for the shortest wait."""
NO_TOLERANCE = Number(
    0,
    f"From Kubernetes 1.35; leave it out before. Without it, an HPA ignores steps of up to "
    f"{formatting.share(DEFAULT_FLAGS.tolerance)}, so 11 replicas never become 12.",
)
_HINT = Context(prec=3, rounding=ROUND_DOWN)
"""Downward: a capacity that is too low costs replicas, one that is too high lets messages wait."""


def by_promise(draft: Draft) -> Recommendation | None:
    """The HPA that goes by the promised wait, with the behavior of the adapter's example (docs/demand.md). Its minimum
    is 1, because the number itself does not fall below what arrives. None where no number can be recommended."""
    promise, hpa = _promise(draft), draft.hpa
    if promise is None:
        return None
    window = Number(WINDOW_SECONDS, "The number itself falls only if it need not rise again soon, so this is enough.")
    return replace(
        hpa,
        target=Target(1, "The metric is a number of replicas, which the adapter computes as the rule says."),
        min_replicas=_least(hpa.min_replicas),
        up=replace(hpa.up, tolerance=NO_TOLERANCE),
        down=replace(hpa.down, window_seconds=window),
        rule=promise,
    )


def _promise(draft: Draft) -> Promise | None:
    load, wait = draft.load, math.floor(draft.promised)
    if draft.refusal or load.capacity is None or load.advised is None or wait < 1 or load.advised < SMALLEST_HINT:
        return None
    return Promise(
        Number(min(wait, LONGEST_WAIT_SECONDS), f"A message waits {draft.wait} at most."),
        float(_HINT.create_decimal_from_float(load.advised * (1 + 1e-9))),
        f"Messages/s of one member: {advised_in_words(load.capacity)}. It counts until the adapter has learned it.",
    )


def _least(given: Number) -> Number:
    if given.value == 0:
        return given
    return Number(1, "The number itself is 1 or more while messages arrive or wait.")


def by_lag(hpa: Recommendation) -> Recommendation:
    """The same for a lag that the adapter divides. There is a target."""
    assert hpa.target.value is not None
    return replace(
        hpa,
        target=Target(1, "The metric is a number of replicas: the adapter divides the lag as the rule says."),
        up=replace(hpa.up, tolerance=NO_TOLERANCE),
        rule=LagPerReplica(Number(hpa.target.value, f"As the target of an HPA on the lag. {hpa.target.reason}")),
    )
