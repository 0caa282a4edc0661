"""How long and how often each benchmark measures: in full, or just enough to show that it works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    settle_cycles: int
    """Cycles between an adapter's first good one and the window, which excludes what it does once at its start."""
    cycles: int
    """Cycles in which requests are counted. A multiple of 6: some requests are sent every third or sixth cycle."""
    long_cycles: int
    """Cycles in which CPU is measured."""
    rounds: int
    slice_seconds: float
    warm_up_seconds: float
    first_read_rounds: int
    partitions: tuple[int, ...]
    """The partitions of the fake brokers, step by step."""
    failing_groups: int
    timed_cycles: int
    """Cycles whose CPU is measured one by one. A multiple of 6, as above."""
    admin_rounds: int
    busy_partitions: tuple[int, ...]
    """Like `partitions`, for cycles during reads."""
    busy_seconds: float
    memory_cycles: int
    single_reads: int
    """Runs of each kind."""
    freeze_seconds: float
    late_seconds: float
    rude_seconds: float
    groups_on_brokers: int
    history_partitions: tuple[int, ...]
    """Partitions of the days that are compacted."""
    history_flushes: int
    scaling_hours: int
    """That are simulated. Some of the events come after two hours."""
    replay_minutes: int
    """Of the history that HPAs are replayed on."""


FULL = Effort(
    settle_cycles=1,
    cycles=6,
    long_cycles=12,
    rounds=9,
    slice_seconds=2.0,
    warm_up_seconds=2.0,
    first_read_rounds=3,
    partitions=(1_000, 10_000, 100_000),
    failing_groups=10_000,
    timed_cycles=24,
    admin_rounds=3,
    busy_partitions=(10_000, 100_000),
    busy_seconds=40.0,
    memory_cycles=100,
    single_reads=50,
    freeze_seconds=60.0,
    late_seconds=30.0,
    rude_seconds=20.0,
    groups_on_brokers=1000,
    history_partitions=(1_000, 10_000),
    history_flushes=24,
    scaling_hours=6,
    replay_minutes=14 * 1440,
)
QUICK = Effort(
    settle_cycles=1,
    cycles=1,
    long_cycles=2,
    rounds=2,
    slice_seconds=0.5,
    warm_up_seconds=0.5,
    first_read_rounds=1,
    partitions=(1_000, 5_000),
    failing_groups=500,
    timed_cycles=6,
    admin_rounds=1,
    busy_partitions=(1_000, 5_000),
    busy_seconds=2.0,
    memory_cycles=25,
    single_reads=5,
    freeze_seconds=15.0,
    late_seconds=5.0,
    rude_seconds=3.0,
    groups_on_brokers=50,
    history_partitions=(100, 200),
    history_flushes=2,
    scaling_hours=1,
    replay_minutes=60,
)
