"""Whatever happens, both replicas serve the right numbers once it is over; only refusals may last for a while."""

import os
from random import Random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.support.kafka.random_replicas import CYCLES_UNTIL_PLAIN, Replicas

STEPS = 4


@settings(max_examples=int(os.environ.get("REPLICA_EXAMPLES", "6")))
@given(st.integers(min_value=0, max_value=2**32))
def test_two_replicas_serve_the_right_lag_after_restarts_outages_moves_and_expiries(seed: int) -> None:
    replicas = Replicas(Random(seed))  # noqa: S311 - a random history, not a secret
    for _ in range(STEPS):
        replicas.happen()
        note(f"{replicas.history}")
        right = replicas.right()
        assert all(answer == right[pair] for pair, answer in replicas.numbers())
        if replicas.served() != [right] * 2:
            replicas.run(CYCLES_UNTIL_PLAIN)
        assert replicas.served() == [right] * 2
