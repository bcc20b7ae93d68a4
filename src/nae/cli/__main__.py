"""``python -m nae.cli``: the same as ``nae``."""

import sys

from nae.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
