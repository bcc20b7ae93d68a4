import json
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

import nae
from nae.encoding import read_table
from nae.serving import Limits
from nae.serving.answers import encode, explain_rows, predict_rows
from tests.serving.conftest import make_rows, serving


def records(n_rows: int, seed: int = 1) -> list[dict[str, object]]:
    table = make_rows(n_rows, seed)
    return [{name: values[i] for name, values in table.items()} for i in range(n_rows)]


def test_predictions_are_those_of_the_model(client: httpx.Client, models: Path) -> None:
    answer = client.post("/predict", json={"rows": records(30)})
    assert answer.status_code == 200
    expected = nae.load(models / "number.nae").predict(make_rows(30, 1))
    np.testing.assert_array_equal(answer.json()["predictions"], expected)
    assert answer.json()["model"] == "number"


@pytest.mark.parametrize("name", ["two", "three"])
def test_classes_come_with_their_probabilities(many: httpx.Client, models: Path, name: str) -> None:
    answer = many.post(f"/models/{name}/predict", json={"rows": records(30)}).json()
    model = nae.load(models / f"{name}.nae")
    found = [[row[label] for label in model.classes] for row in answer["probabilities"]]
    np.testing.assert_array_equal(found, model.predict_proba(make_rows(30, 1)))
    assert answer["predictions"] == model.predict(make_rows(30, 1)).tolist()


@pytest.mark.parametrize("name", ["two", "three"])
def test_weights_of_classes_choose_and_probabilities_stay(models: Path, name: str) -> None:
    plain, rows = nae.load(models / f"{name}.nae"), make_rows(30, 1)
    model = replace(plain, class_weight=(1e-9, 1.0, 1e-9)[: len(plain.classes)])
    found = predict_rows(model, model.cells(rows))
    assert set(found["predictions"]) == {model.classes[1]} < set(plain.predict(rows))
    assert found["probabilities"] == predict_rows(plain, plain.cells(rows))["probabilities"]
    explained = explain_rows(model, read_table(rows), records(30), n_causes=1)["explanations"]
    assert [one["prediction"] for one in explained] == found["predictions"]


def test_an_absent_field_and_null_are_missing_values(client: httpx.Client, models: Path) -> None:
    row = {name: value for name, value in records(1)[0].items() if name not in ("size", "town")}
    absent = client.post("/predict", json={"rows": [row, {**row, "size": None, "town": None}]}).json()["predictions"]
    assert absent[0] == absent[1]
    expected = nae.load(models / "number.nae").predict([{**row, "size": None, "town": None}])
    assert absent[0] == expected[0]
    assert client.post("/predict", json={"rows": [{}]}).status_code == 200


def test_values_never_seen_and_out_of_range_are_answered(client: httpx.Client) -> None:
    rows = [{"town": "Atlantis"}, {"size": 1e308}, {"size": -1e308}, {"zone": 2}, {"zone": "3"}, {"rooms": 2.5}]
    answer = client.post("/predict", json={"rows": rows})
    assert answer.status_code == 200
    assert np.isfinite(answer.json()["predictions"]).all()


def test_a_category_of_numbers_may_be_sent_as_number_or_text(client: httpx.Client) -> None:
    found = client.post("/predict", json={"rows": [{"zone": 1}, {"zone": "1"}, {"zone": 1.0}]}).json()["predictions"]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["number", "two", "three", "count"])
def test_explanations_add_up_and_keep_their_bounds(many: httpx.Client, models: Path, name: str) -> None:
    rows = records(5)
    answer = many.post(f"/models/{name}/explain", params={"causes": 2}, json={"rows": rows})
    assert answer.status_code == 200, answer.text
    model = nae.load(models / f"{name}.nae")
    score = model.decision_function(make_rows(5, 1)).reshape(5, -1)
    for at, explained in enumerate(answer.json()["explanations"]):
        assert [part["output"] for part in explained["outputs"]] == list(model.outputs)
        for o, part in enumerate(explained["outputs"]):
            total = part["intercept"] + sum(one["contribution"] for one in part["contributions"])
            assert total == pytest.approx(score[at, o])
            for one in part["contributions"]:
                assert one["lower"] <= one["contribution"] <= one["upper"]
                assert one["own"] + one["shift"] == pytest.approx(one["contribution"])
                assert one["value"] == rows[at][one["feature"]]
                assert len(one["causes"]) == 2
    predicted = many.post(f"/models/{name}/predict", json={"rows": rows}).json()["predictions"]
    explained = [one["prediction"] for one in answer.json()["explanations"]]
    assert explained == (pytest.approx(predicted) if not model.classes else predicted)


@pytest.mark.parametrize(("name", "unit"), [("two", "probability"), ("three", "probability"), ("count", "response")])
def test_explanations_add_up_in_the_unit_of_the_prediction(
    many: httpx.Client, models: Path, name: str, unit: str
) -> None:
    answer = many.post(f"/models/{name}/explain", params={"unit": unit}, json={"rows": records(5)}).json()
    found = nae.load(models / f"{name}.nae").explain_local(make_rows(5, 1), unit=unit)
    for at, explained in enumerate(answer["explanations"]):
        for o, part in enumerate(explained["outputs"]):
            total = part["average"] + sum(one["contribution"] for one in part["contributions"])
            assert total == pytest.approx(part[unit])
            assert total == pytest.approx(found.prediction[at, o])


def test_a_unit_that_a_model_does_not_have_is_refused(client: httpx.Client) -> None:
    answer = client.post("/explain", params={"unit": "probability"}, json={"rows": records(1)})
    assert answer.status_code == 422
    assert "needs a classifier" in answer.json()["error"]


@pytest.mark.parametrize(
    ("name", "toward", "given"),
    [
        ("two", "False", {"toward": "False"}),
        ("three", "not high", {"against": "high"}),
        ("number", "low", {"toward": "low"}),
        ("count", None, {}),
    ],
)
def test_reasons_are_those_of_the_model(
    many: httpx.Client, models: Path, name: str, toward: str | None, given: dict[str, str]
) -> None:
    asked = {"reasons": 2, "unit": "response", **({"toward": toward} if toward else {})}
    answer = many.post(f"/models/{name}/explain", params=asked, json={"rows": records(5)})
    assert answer.status_code == 200, answer.text
    found = nae.load(models / f"{name}.nae").reasons(make_rows(5, 1), k=2, unit="response", **given)
    assert answer.json()["outcome"] == found.outcome
    for row, one in enumerate(answer.json()["rows"]):
        assert [reason["feature"] for reason in one["reasons"]] == list(found.names(row))
        assert [reason["sentence"] for reason in one["reasons"]] == list(found.sentences(row))
        assert one["prediction"] == pytest.approx(found.prediction[row])


def test_an_outcome_that_a_model_does_not_have_is_refused(client: httpx.Client) -> None:
    answer = client.post("/explain", params={"reasons": 2, "toward": "up"}, json={"rows": records(1)})
    assert answer.status_code == 422
    assert "toward must be one of 'high', 'low'; got 'up'" in answer.json()["error"]


def test_a_number_that_json_does_not_have_is_null() -> None:
    assert encode({"a": [1.0, float("inf"), {"b": float("nan")}]}) == b'{"a":[1.0,null,{"b":null}]}'


def test_the_card_holds_the_effect_caps(client: httpx.Client, models: Path) -> None:
    card = client.get("/model").json()
    caps = nae.load(models / "number.nae").effect_caps_.caps
    assert card["caps"] == [cap.sentence for cap in caps]
    assert card["target"] == "y"
    (promise,) = card["promises"]
    assert (promise["claim"], promise["verdict"]) == ("size alone moves the score by at most 1e+06.", "proven")
    assert [feature["name"] for feature in card["features"]] == ["size", "rooms", "garden", "town", "zone"]


def test_the_schema_types_every_feature_with_real_examples(client: httpx.Client) -> None:
    schema = client.get("/schema").json()
    fields = schema["properties"]
    assert fields["size"]["type"] == ["number", "null"]
    assert fields["garden"]["type"] == ["boolean", "null"]
    assert fields["town"]["type"] == ["string", "null"]
    assert fields["zone"]["type"] == ["string", "number", "null"]
    assert set(fields["town"]["examples"]) == {"Ulm", "Köln", "Bonn"}
    median = float(np.median([value for value in make_rows()["size"] if value is not None]))
    assert fields["size"]["examples"][0] == pytest.approx(median, rel=0.1)
    assert isinstance(fields["rooms"]["examples"][0], int)
    assert client.post("/predict", json={"rows": schema["examples"]}).status_code == 200


def test_the_document_follows_the_models(client: httpx.Client, many: httpx.Client) -> None:
    one = client.get("/openapi.json").json()
    assert {"/predict", "/explain", "/schema", "/model", "/healthz", "/metrics"} <= set(one["paths"])
    several = many.get("/openapi.json").json()
    assert "/models/three/predict" in several["paths"]
    assert "/predict" not in several["paths"]
    content = several["paths"]["/models/three/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert "size" in content["schema"]["properties"]["rows"]["items"]["properties"]
    assert many.post("/models/three/predict", json=content["example"]).status_code == 200


def test_health_models_and_metrics(many: httpx.Client) -> None:
    assert many.get("/healthz").json() == {"status": "ok", "models": ["count", "number", "three", "two"]}
    assert [one["name"] for one in many.get("/models").json()["models"]] == ["count", "number", "three", "two"]
    many.post("/models/two/predict", json={"rows": records(7)})
    many.get("/nowhere")
    answer = many.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert int(values['nae_rows_total{model="two",work="predict"}']) >= 7
    assert int(values['nae_requests_total{path="/models/{name}/predict",method="POST",status="200"}']) >= 1
    assert int(values['nae_requests_total{path="other",method="GET",status="404"}']) >= 1
    assert values["nae_models"] == "4"
    assert values["nae_requests_in_flight"] == "1"  # the question itself
    buckets = [int(values[key]) for key in values if key.startswith('nae_request_seconds_bucket{path="other"')]
    assert buckets == sorted(buckets)
    assert "/nowhere" not in answer.text


def test_a_name_asked_for_at_the_root_of_several_is_explained(many: httpx.Client) -> None:
    answer = many.post("/predict", json={"rows": [{}]})
    assert answer.status_code == 404
    assert "Several models are served" in answer.json()["error"]
    answer = many.get("/models/thre/model")
    assert answer.status_code == 404
    assert "Did you mean 'three'?" in answer.json()["error"]


def test_a_large_batch_is_the_same_as_small_ones(models: Path) -> None:
    rows = records(2000)
    with serving(models / "number.nae", limits=Limits()) as client:
        together = client.post("/predict", json={"rows": rows}).json()["predictions"]
        apart = [client.post("/predict", json={"rows": rows[i : i + 1]}).json()["predictions"][0] for i in range(20)]
    np.testing.assert_allclose(together[:20], apart, rtol=1e-6)
    assert len(together) == len(json.loads(json.dumps(rows)))
