"""`kafka-lag-report`, `python -m spark`, and the file that spark-submit runs: they start the command line."""

import sys


def main() -> None:
    try:
        from spark.cli import main as run  # noqa: PLC0415 -- fails where the packages of the extra are absent
    except ModuleNotFoundError as absent:
        print(
            f"kafka-lag-report: {absent.name} is not installed; use the image that `docker build --target spark`"
            " builds, or install kafka-lag-adapter with the extra `spark`",
            file=sys.stderr,
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
