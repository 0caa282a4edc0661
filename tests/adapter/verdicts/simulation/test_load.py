import numpy as np

from adapter.verdicts.simulation.consumers import Messages
from adapter.verdicts.simulation.load import MINUTE, WAITS_FROM, Curves, Load


def test_waits_are_those_of_the_whole_curves_however_far_back_messages_came() -> None:
    """Lanes that keep up, are minutes or hours behind, or have messages from before the start; nothing came in a third
    of the minutes."""
    random, first = np.random.default_rng(7), 60
    produced = 600.0 * random.lognormal(0, 0.5, 180) * (random.random(180) > 1 / 3)
    curves = Curves.of(Load(produced, np.full(180, 0.4), lag=500.0, wait_seconds=90.0), 4)
    behind = np.array([0.0, 0.3, 30.0, 3000.0, 1e9])[:, np.newaxis] * random.uniform(0.5, 2, (5, 90))
    waiting = [
        np.minimum(behind, curve[first + 2 : first + 92] - curve[0]) for curve in (curves.busiest, curves.others)
    ]

    def ages(curve: Messages, waits: Messages) -> Messages:
        times = np.concatenate([[-90.0], np.arange(len(curve) - 1) * MINUTE])
        read = np.interp(curve[first + 2 : first + 92] - waits * (1 - 1e-9), curve, times)
        return np.where(waits > WAITS_FROM, times[first + 2 : first + 92] - read, 0.0)

    expected = np.maximum(ages(curves.busiest, waiting[0]), ages(curves.others, waiting[1]))
    assert curves.wait(first, *waiting).tolist() == expected.tolist()
    assert expected.max() > first * MINUTE
