from typing import Any

import numpy as np
import pytest

from nae.decisions import read_outcome
from nae.errors import UserError
from nae.tables import TableModel
from tests.laws.models import make_model


def model_of(n_outputs: int, link: str) -> TableModel:
    return make_model(np.random.default_rng(0), n_outputs=n_outputs, link=link)


def test_the_score_of_two_classes_speaks_for_either() -> None:
    model = model_of(1, "logit")
    found = {name: read_outcome(model, name).direction.tolist() for name in ("yes", "no")}
    assert found == {"yes": [1.0], "no": [-1.0]}
    assert read_outcome(model).name == "yes"
    assert read_outcome(model, against="yes").name == "no"


def test_a_class_of_many_is_compared_with_the_mean_of_the_others() -> None:
    model, score = model_of(3, "softmax"), np.array([0.5, -1.0, 2.0])
    logs = np.log(model.link.inverse(score[None]))[0]
    one = read_outcome(model, "class 0")
    assert one.direction @ score == pytest.approx(np.mean([logs[0] - logs[1], logs[0] - logs[2]]))
    np.testing.assert_array_equal(read_outcome(model, against="class 0").direction, -one.direction)


def test_two_classes_of_many_are_compared_with_each_other() -> None:
    found = read_outcome(model_of(3, "softmax"), "class 2", against="class 0")
    assert found.direction.tolist() == [-1.0, 0.0, 1.0]
    assert (found.name, found.title) == ("class 2 rather than class 0", "log-odds of class 2 against class 0")


def test_a_number_is_high_or_low() -> None:
    assert read_outcome(model_of(1, "identity")).direction.tolist() == [1.0]
    assert read_outcome(model_of(1, "identity"), against="high").direction.tolist() == [-1.0]
    assert read_outcome(model_of(2, "identity"), "low", output="class 1").direction.tolist() == [0.0, -1.0]


@pytest.mark.parametrize(
    ("n_outputs", "link", "given", "message"),
    [
        (3, "softmax", {}, r"an outcome must be named\. Pass one, such as toward='class 0'"),
        (3, "softmax", {"toward": "class 7"}, r"toward must be one of the model's outcomes; got 'class 7'"),
        (1, "logit", {"toward": "yes", "against": "yes"}, "toward and against must differ; both are 'yes'"),
        (1, "logit", {"output": "yes"}, "output names one of several targets; this model has classes"),
        (1, "identity", {"against": "yes"}, r"against must be one of the model's outcomes; got 'yes'"),
        (1, "identity", {"toward": "low", "against": "low"}, "toward and against must differ"),
        (2, "identity", {}, "has 2 outputs"),
    ],
)
def test_an_outcome_that_the_model_does_not_have_is_refused(
    n_outputs: int, link: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_outcome(model_of(n_outputs, link), **given)
