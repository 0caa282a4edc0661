"""What Python packages Spark's executors need, which by Spark Connect are not sent."""

import subprocess
import sys

import pytest

OF_COMPACT = ("pipeline.examine_task", "pipeline.hour_task", "pipeline.fold_task", "pipeline.day_task")
OF_REPORTS = ("report.rows_task", "report.samples_task", "trials.task", "replay.outcome")
OF_THE_DRIVER = ("jinja2", "obstore", "pandas", "grpc", "typer", "rich", "cryptography", "kafka", "kubernetes")
OF_HPAS = ("numba", "pydantic", "yaml")


@pytest.mark.parametrize(
    ("modules", "missing"),
    [(OF_COMPACT, (*OF_THE_DRIVER, *OF_HPAS)), (OF_REPORTS, OF_THE_DRIVER)],
    ids=["compact with pyarrow and numpy", "report and replay with numba, pydantic and PyYAML as well"],
)
def test_kernels_need_no_packages_but_those_of_the_docs(modules: tuple[str, ...], missing: tuple[str, ...]) -> None:
    hidden = f"sys.modules.update(dict.fromkeys({missing}))"
    imports = "; ".join(f"import spark.{module}" for module in ("engine.tasks", "storage.bucket", *modules))
    code = f"import sys; {hidden}; {imports}"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
