"""Scales targets of HPAs to zero and back, where an annotation asks for it: gather, decide (`zero`), apply.

An annotation of ours says that a target sleeps. It is written before the target is scaled to 0 and removed after the
target was scaled up, so whoever comes next knows what to wake, even if a process ends between the two writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from adapter.errors import AdapterError
from adapter.metrics.query import Metrics
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.autoscalers.annotations import (
    ASLEEP_BY,
    ASLEEP_SINCE,
    SCALE_TO_ZERO,
    ZeroWish,
    is_of_others,
    zero_wish_of,
)
from apiservice.autoscalers.autoscaler import Autoscaler, ScaleTarget
from apiservice.autoscalers.hpa_writes import HpaWrites
from apiservice.autoscalers.rivals import Rivals
from apiservice.autoscalers.zero import Levels, Quiet, Step, quiet_of, refusal_of, step_of

MOST_CONFLICTS = 3
"""In a row; then a target is not scaled to zero for `PAUSE_SECONDS`."""
PAUSE_SECONDS = 600.0
NEVER = float("-inf")
ACTION = "ScaleToZero"
NOT_ASKED = "its HPA does not ask for it"

_Key = tuple[str, str, ScaleTarget]
"""Namespace and name of an HPA, and its target."""


@dataclass(slots=True)
class _State:
    """What this process remembers of one HPA and its target."""

    quiet: Quiet | None = None
    asleep: Autoscaler | None = None
    """The HPA as it was when the target was last known to sleep."""
    is_own_sleep: bool = False
    """Whether this process has put it to sleep."""
    acted_on: str = ""
    """The version of the HPA that this process has changed since; it must not act on that one again."""
    conflicts: int = 0
    """In a row."""
    paused_until: float = NEVER


@dataclass(frozen=True, slots=True)
class Asked:
    """What follows from the annotations of an HPA."""

    wish: ZeroWish | None
    """None: nothing is asked for that can be done."""
    refusal: str = ""
    """What is wrong with what is asked for."""
    why_not: str = ""


class Activator:
    """One thread calls it. Only a leader writes; the others follow, so that they can take over at once."""

    def __init__(self, writes: HpaWrites, monotonic: Callable[[], float]) -> None:
        self._writes = writes
        self._monotonic = monotonic
        self._states: dict[_Key, _State] = {}

    def look(
        self, hpas: Sequence[Autoscaler], rivals: Rivals, metrics: Metrics, *, is_allowed: bool, is_leader: bool
    ) -> None:
        """Looks at every HPA once and does what is due."""
        marked = (hpa for hpa in hpas if SCALE_TO_ZERO in hpa.annotations or ASLEEP_SINCE in hpa.annotations)
        asking = {(*hpa.place, hpa.target): hpa for hpa in marked}
        self._follow_removals(asking, is_leader=is_leader)
        due: dict[Step, list[Callable[[], bool]]] = {step: [] for step in Step}
        for key, hpa in asking.items():
            asked = asked_by(hpa, rivals, metrics, is_allowed=is_allowed)
            state = self._states.setdefault(key, _State())
            if asked.wish is None and self._is_of_others(_last_marked(state, hpa)):
                continue
            step = self._decided(state, hpa, asked, metrics, is_leader=is_leader)
            if is_leader:
                self._writes.report(hpa, ACTION, "ScaleToZeroRefused", asked.refusal)
                due[step].append(partial(self._writes.tried, hpa, partial(self._take, step, state, hpa, asked)))
        # Messages wait for those that wake, so they come first.
        for act in (*due[Step.WAKE], *due[Step.SLEEP], *due[Step.CHECK]):
            act()

    def _follow_removals(self, asking: Mapping[_Key, Autoscaler], *, is_leader: bool) -> None:
        """Wakes what sleeps although its HPA has lost its annotations or metrics, has another target, or is gone.

        What another adapter has put to sleep is only forgotten."""
        for key in self._states.keys() - asking.keys():
            state = self._states[key]
            former = state.asleep if is_leader else None
            if (
                former is None
                or self._is_of_others(former)
                or self._writes.tried(former, partial(self._wake, state, former, NOT_ASKED))
            ):
                del self._states[key]

    def _is_of_others(self, hpa: Autoscaler) -> bool:
        return is_of_others(hpa.annotations, ASLEEP_BY, self._writes.owner)

    # -- decide ----------------------------------------------------------------------------------

    def _decided(self, state: _State, hpa: Autoscaler, asked: Asked, metrics: Metrics, *, is_leader: bool) -> Step:
        if hpa.version == state.acted_on:
            return Step.NOTHING  # the watch has not shown yet what was written
        is_marked = ASLEEP_SINCE in hpa.annotations
        # Somebody may remove the annotation while the target sleeps; but then another leader may have woken it, too.
        if is_marked or not is_leader:
            state.asleep = hpa if is_marked else None
        now = self._monotonic()
        levels = Levels((), now) if asked.wish is None else _levels(metrics, hpa)
        is_watched = asked.wish is not None and now >= state.paused_until
        activation = asked.wish.activation_milli if asked.wish else 0
        state.quiet = quiet_of(state.quiet, hpa, levels, activation, now) if is_watched else None
        return step_of(hpa, asked.wish, levels, state.quiet, now, is_asleep=state.asleep is not None)

    # -- apply -----------------------------------------------------------------------------------

    def _take(self, step: Step, state: _State, hpa: Autoscaler, asked: Asked) -> None:
        match step:
            case Step.SLEEP:
                self._sleep(state, hpa, asked.wish or ZeroWish())
            case Step.WAKE:
                self._wake(state, hpa, asked.why_not or "there is work")
            case Step.CHECK:
                self._check(state, hpa)

    def _sleep(self, state: _State, hpa: Autoscaler, wish: ZeroWish) -> None:
        state.quiet = None  # so that what fails is tried again only after another cooldown
        scale = self._writes.scale_of(hpa)
        if scale is None or not scale.replicas:
            return  # somebody else has scaled it to 0
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if not self._writes.mark_asleep(hpa, since):
            return
        state.acted_on = hpa.version
        if self._writes.set_replicas(scale, 0):
            state.asleep, state.is_own_sleep = hpa, True
            text = f"scaled {_target(hpa)} from {scale.replicas} to 0: no work for {wish.cooldown_seconds:g} s"
            self._writes.tell(hpa, ACTION, "ScaledToZero", text)
        else:
            self._writes.mark_awake(hpa)
            self._conflict(state, hpa, f"{_target(hpa)} was changed by others while it was being scaled to 0")

    def _wake(self, state: _State, hpa: Autoscaler, why: str) -> None:
        scale, replicas = self._writes.scale_of(hpa), max(hpa.minimum, 1)
        is_at_zero = scale is not None and not scale.replicas
        if scale is not None and is_at_zero and not self._writes.set_replicas(scale, replicas):
            raise ClusterUnreachable(f"others keep changing {scale.path}", 409)
        if is_at_zero:
            self._writes.tell(hpa, ACTION, "ScaledFromZero", f"scaled {_target(hpa)} from 0 to {replicas}: {why}")
        self._writes.mark_awake(hpa)
        state.asleep, state.is_own_sleep, state.acted_on, state.conflicts = None, False, hpa.version, 0

    def _check(self, state: _State, hpa: Autoscaler) -> None:
        """The HPA's status may be late. A target that has replicas is awake, whoever scaled it."""
        scale = self._writes.scale_of(hpa)
        if scale is not None and not scale.replicas:
            return
        self._writes.mark_awake(hpa)
        is_conflict, state.is_own_sleep, state.asleep = state.is_own_sleep, False, None
        state.acted_on = hpa.version if ASLEEP_SINCE in hpa.annotations else ""
        if is_conflict and scale is not None:
            text = (
                f"{_target(hpa)} was scaled to {scale.replicas} by others, without work, after it had been scaled to 0"
            )
            self._conflict(state, hpa, text)

    def _conflict(self, state: _State, hpa: Autoscaler, text: str) -> None:
        state.conflicts += 1
        if state.conflicts >= MOST_CONFLICTS:
            state.conflicts, state.paused_until = 0, self._monotonic() + PAUSE_SECONDS
            text += f"; {MOST_CONFLICTS} times in a row, so it is left alone for {PAUSE_SECONDS / 60:g} minutes"
        self._writes.warn(hpa, ACTION, "ScaleToZeroConflict", text)


def asked_by(hpa: Autoscaler, rivals: Rivals, metrics: Metrics, *, is_allowed: bool) -> Asked:
    if not is_allowed:
        return Asked(None, why_not="the settings do not allow it")
    try:
        wish = zero_wish_of(hpa.annotations)
    except ValueError as error:
        return Asked(None, str(error), str(error))
    if wish is None:
        return Asked(None, why_not=NOT_ASKED)
    refusal = refusal_of(hpa, rivals.of(hpa), metrics.shows_work)
    return Asked(None if refusal else wish, refusal, refusal)


def _levels(metrics: Metrics, hpa: Autoscaler) -> Levels:
    """Reads each metric as the HPA does; whatever is refused or replaced by a fallback is unknown."""
    milli: list[int | None] = []
    known_until = float("inf")
    for metric in hpa.metrics:
        try:
            reading = metrics.read(metric.name, metric.selector, hpa.namespace, may_list=False)
        except AdapterError:
            milli.append(None)
        else:
            milli.append(None if reading.is_fallback else sum(value.milli for value in reading.values))
            known_until = min(known_until, reading.valid_until)
    return Levels(tuple(milli), known_until)


def _last_marked(state: _State, hpa: Autoscaler) -> Autoscaler:
    """Returns the HPA as it was before somebody removed its marks, if that has happened while its target sleeps."""
    return hpa if state.asleep is None or ASLEEP_SINCE in hpa.annotations else state.asleep


def _target(hpa: Autoscaler) -> str:
    return f"{hpa.target.kind} {hpa.target.name}"
