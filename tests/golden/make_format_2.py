"""Writes ``format_2.nae`` and what it must predict. Run once per format; the files are never written again.

python -m tests.golden.make_format_2
"""

import numpy as np

from tests.golden.make_format_1 import make_model, write
from tests.laws.models import clamped

if __name__ == "__main__":
    write(clamped(make_model(), np.random.default_rng(2)), "format_2")
