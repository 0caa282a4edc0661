"""`make demo`: the main job on real parts of this machine, shown on the terminal; `scenario` has its steps.

Everything runs on 127.0.0.1 and ends with this process in any case. Little is imported here, so that Ctrl-C while
Python loads the rest shows no traceback."""

import signal
import sys


def main() -> int:
    """Returns 0 if the replicas changed as expected, 1 if not, 2 if something is missing, 130 or 143 if interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from local.demo import screen  # noqa: PLC0415 - see above

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return screen.main()


if __name__ == "__main__":
    sys.exit(main())
