"""Where the feature gate HPAScaleToZero is off, doctor says so."""

from apiservice.commands.doctor import checks_of
from apiservice.doctor.check import Outcome
from apiservice.flags import DoctorFlags
from local.kubernetes.control_plane import ControlPlane
from tests.support.checks import of


def test_a_gate_that_is_off_is_a_warning(gateless: ControlPlane) -> None:
    (check,) = of(checks_of(DoctorFlags(kubeconfig=gateless.admin_kubeconfig, category=["kubernetes"])), "KLA408")

    assert (check.outcome, check.detail) == (
        Outcome.WARNING,
        "minReplicas 0 is refused: the feature gate HPAScaleToZero is off",
    )
