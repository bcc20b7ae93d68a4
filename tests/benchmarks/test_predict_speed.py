"""The page about speed and the README's part of it."""

from benchmarks.predict_speed import RESULT, Found, Timing, ratios
from benchmarks.readme import README


def test_the_readme_shows_what_was_measured() -> None:
    shown = (
        README.read_text()
        .split("<!-- predict_speed: start -->")[1]
        .split("<!-- predict_speed: end -->")[0]
        .strip()
        .splitlines()
    )
    assert len(shown) == 6
    assert set(shown) <= set(RESULT.read_text().splitlines())


def test_ratios_are_against_the_peers_of_the_same_run() -> None:
    times = {
        "LightGBM predict": Timing(40.0, 20.0),
        "EBM predict": Timing(2.0, 2.0),
        "kernel predict": Timing(4.0, 3.0),
        "kernel contributions": Timing(5.0, 3.5),
        "numpy predict": Timing(20.0, 20.0),
        "numpy contributions": Timing(25.0, 24.0),
    }
    lines = ratios([Found("trees", 10, "a model", times, 0.0)])
    assert lines[2] == "| trees, kernel | 4.00 | 0.10 | 2.00 | × 1.25 | 0.15 | 1.50 |"
    assert lines[3] == "| trees, numpy | 20.00 | 0.50 | 10.00 | × 1.25 | 1.00 | 10.00 |"
