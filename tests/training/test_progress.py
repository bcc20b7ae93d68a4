"""The progress bar and the history: what is shown and what is kept."""

import json
import sys

import pytest

from nae.errors import MissingDependencyError
from nae.training.history import Epoch, History
from nae.training.progress import progress_bar


def epochs() -> list[Epoch]:
    return [
        Epoch(epoch=1, loss=1.5, validation=None, additivity=None, seconds=0.1),
        Epoch(epoch=2, loss=0.5, validation=0.75, additivity=0.9, seconds=0.2),
    ]


def test_the_bar_shows_epoch_loss_validation_additivity_and_time(capsys):
    with progress_bar(2, is_shown=True) as show:
        for epoch in epochs():
            show(epoch)
    shown = capsys.readouterr().out
    for word in ("epoch   2", "loss 0.5000", "validation 0.7500", "additivity 0.90", "0:00:0"):
        assert word in shown


def test_a_bar_that_is_not_shown_prints_nothing(capsys):
    with progress_bar(2, is_shown=False) as show:
        for epoch in epochs():
            show(epoch)
    assert capsys.readouterr().out == ""


def test_the_bar_says_which_package_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    match = r"rich is needed for this and cannot be imported .*; pip install 'neural-additive-experts\[train\]'"
    with pytest.raises(MissingDependencyError, match=match), progress_bar(2, is_shown=True):
        pass


def test_a_history_prints_in_a_line():
    history = History([Epoch(1, 2.0, 1.5, None, 0.5), Epoch(2, 1.0, 1.2, 0.8, 0.25)], best_epoch=2)
    assert repr(history) == "History(2 epochs, the best is 2; ran all epochs)"


def test_a_history_is_a_list_of_epochs():
    history = History(epochs(), best_epoch=2)
    assert len(history) == 2
    assert [epoch.loss for epoch in history] == history.column("loss") == [1.5, 0.5]
    assert history[-1].validation == 0.75
    found = history.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["best_epoch"], found["stopped"]) == (2, "ran all epochs")
    assert found["epochs"][1] == {"epoch": 2, "loss": 0.5, "validation": 0.75, "additivity": 0.9, "seconds": 0.2}
