"""When something is due that is read less often than in every cycle."""


def is_due(last: float, period: float, now: float, interval: float) -> bool:
    """Whether this cycle is nearer to the end of the period than the next one, which begins after `interval`."""
    return now - last >= period - interval / 2
