"""The first minute with an installed wheel: the core is there, and a model is fitted, saved, loaded and explained."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import nae
from nae.native import best_instructions, reason


def main() -> None:
    """Run everything; an assertion names what is wrong."""
    assert not reason(), reason()
    X, y = nae.datasets.multimodal(400)
    model = nae.NAERegressor(max_epochs=5, random_state=0).fit(X, y)
    predicted = model.predict(X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.nae")
        loaded = nae.load(Path(folder) / "model.nae")
        np.testing.assert_array_equal(loaded.predict(X), predicted)
    found = loaded.contributions(X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.intercept, predicted, rtol=1e-6)
    assert (found.lower <= found.values).all()
    assert (found.values <= found.upper).all()
    assert len(loaded.explain_global().features) == len(X)
    assert "torch" not in sys.modules
    sys.stdout.write(f"{best_instructions()}\n")


if __name__ == "__main__":
    main()
