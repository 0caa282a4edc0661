"""`make demo`: the main job on real parts of this machine, shown on the terminal; `scenario` has its steps.

Everything runs on 127.0.0.1 and ends with this process, however that ends. Little is imported up here, so that Ctrl-C
while Python loads the rest leaves no traceback.
"""

import signal
import sys


def main() -> int:
    """0: the replicas went as they should; 1: they did not; 2: something is missing; 130, 143: interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from local.demo import screen  # noqa: PLC0415 - see above

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return screen.main()


if __name__ == "__main__":
    sys.exit(main())
