"""`python -m local.images` builds what has changed; status 2 and one sentence if that is impossible."""

import sys

from local.images.built import images
from local.processes import RigError, exit_on_sigterm


def main() -> int:
    try:
        with exit_on_sigterm(), images():
            return 0
    except RigError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
