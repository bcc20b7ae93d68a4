"""A notebook shows what a cell returns, and at its end the figures that pyplot has open: a picture must appear once."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("IPython")

CELLS = (
    "plots.shape(overall, 'rooms')",
    "plots.shapes(overall, features=['rooms'])",
    "plots.three_way(together)",
    "plots.compare(overall, overall, features=['rooms'])",
    "page = plots.shapes(overall, features=['rooms'])",
    "page",
)
SCRIPT = """
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell, values = InteractiveShell.instance(), []
shell.displayhook.write_format_data = lambda data, md_dict=None: values.append(data)


def count_pictures(cell):
    values.clear()
    with capture_output() as captured:
        shell.run_cell(cell).raise_error()
    return sum("image/png" in shown for shown in [*values, *(output.data for output in captured.outputs)])


count_pictures('''
from nae import plots
from tests.plots.explained import NAMES, explained, interaction_of
overall, together = explained(), interaction_of(NAMES[0], NAMES[3], NAMES[1])
''')
print(json.dumps([count_pictures(cell) for cell in CELLS]))
"""


def test_a_notebook_shows_every_picture_once() -> None:
    environment = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    script = f"CELLS = {CELLS!r}\n{SCRIPT}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert dict(zip(CELLS, json.loads(run.stdout), strict=True)) == dict.fromkeys(CELLS, 1)


def test_elsewhere_a_page_stays_open_for_pyplot_to_show() -> None:
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    from nae import plots
    from tests.plots.explained import explained

    mpl.use("Agg")
    page = plots.shapes(explained())
    with pytest.raises(NotImplementedError):  # IPython takes it for "as usual"
        page._ipython_display_()
    assert plt.fignum_exists(page.number)
    plt.close(page)
