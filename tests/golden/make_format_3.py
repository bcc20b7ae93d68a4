"""Writes ``format_3.nae`` and what it must predict. Run once per format; the files are never written again.

python -m tests.golden.make_format_3
"""

import numpy as np

from tests.golden.make_format_1 import make_model, write
from tests.laws.models import clamped, with_doubts

if __name__ == "__main__":
    random = np.random.default_rng(3)
    write(with_doubts(clamped(make_model(), random), random), "format_3")
