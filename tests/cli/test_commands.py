import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nae as library
from nae import NAEClassifier, NAERegressor
from nae.cli.app import run
from nae.cli.reading import read_file
from nae.cli.writing import write_table
from tests.cli.conftest import Command, make_table
from tests.explanation.examples import explained_model

TINY = ["--members", "1", "--epochs", "3"]


def test_fit_prints_a_result_beside_a_baseline_and_what_to_do_next(nae: Command, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.nae"
    code, out, err = nae("fit", folder / "homes.parquet", "--target", "price", "-o", path, *TINY)
    assert code == 0, err
    assert re.search(r"RMSE .*always the mean|always the mean", out)
    assert "Quality on 60 test rows" in out
    assert "300 rows, 4 features; 'price' holds numbers" in err
    assert "240 rows to train and validate on, 60 kept for testing" in err
    assert f"nae explain {path}" in err
    training = library.load(path).training
    assert training.target == "price"
    assert training.n_test_rows == 60
    assert set(training.quality) == {"RMSE", "mean absolute error", "R²"}


def test_the_quality_a_file_remembers_is_that_of_its_test_rows(folder: Path) -> None:
    from nae.cli.columns import align
    from nae.cli.splits import find_test_rows

    model, table = library.load(folder / "price.nae"), make_table()
    truth = np.array(table.column("price"))
    rows = find_test_rows(model, align(table, model.schema), truth)
    assert rows is not None
    assert len(rows) == 60
    error = model.predict(align(table, model.schema).take(rows)) - truth[rows]
    assert model.training.quality["RMSE"] == pytest.approx(float(np.sqrt(np.mean(error**2))))


@pytest.mark.parametrize("words", [["0.1,0.5,0.9"], ["0.1", "--quantile", "0.5", "--quantile", "0.9"]])
def test_several_quantiles_are_fitted_measured_and_predicted(
    nae: Command, folder: Path, tmp_path: Path, words: list[str]
) -> None:
    path, data = tmp_path / "m.nae", folder / "homes.parquet"
    code, out, err = nae("fit", data, "-t", "price", "-o", path, "--quantile", *words, *TINY)
    assert code == 0, err
    assert "pinball loss" in out
    assert "calibration error" in out
    code, _, err = nae("predict", path, data, "-o", tmp_path / "out.parquet")
    assert code == 0, err
    table = read_file(str(tmp_path / "out.parquet"))
    columns = [np.array(table.column(f"prediction of q{level}")) for level in (0.1, 0.5, 0.9)]
    assert (np.diff(columns, axis=0) >= 0).all()
    assert nae("report", path, data, "-o", tmp_path / "r.html")[0] == 0
    code, out, err = nae("certify", path)
    assert code == 0, out + err
    code, out, err = nae("compare", path, path, data)
    assert code == 0, err


QUANTILES = {
    "0.5,many": "--quantile must be a number such as 0.9, or several; got '0.5,many'",
    "0.9,0.1": r"quantile must be in \(0, 1\), or a list of such numbers that ascend",
}


@pytest.mark.parametrize("given", QUANTILES)
def test_quantiles_on_the_command_line_are_checked(nae: Command, folder: Path, tmp_path: Path, given: str) -> None:
    words = ("fit", folder / "homes.parquet", "-t", "price", "-o", tmp_path / "m.nae", "--quantile", given, *TINY)
    code, _, err = nae(*words)
    assert code != 0
    assert re.search(QUANTILES[given], " ".join(err.split()))


def test_quantiles_belong_to_numbers_and_to_their_loss(nae: Command, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "homes.parquet", "-o", tmp_path / "m.nae", "--quantile", "0.9", *TINY)
    assert "--quantile is for regressions" in " ".join(nae(*words, "-t", "sold")[2].split())
    found = nae(*words, "-t", "price", "--loss", "poisson")[2]
    assert "--quantile belongs to --loss quantile; got 'poisson'" in " ".join(found.split())


def test_another_table_has_no_known_test_rows(folder: Path) -> None:
    from nae.cli.columns import align
    from nae.cli.splits import find_test_rows

    model, table = library.load(folder / "price.nae"), make_table(301)
    assert find_test_rows(model, align(table, model.schema), np.array(table.column("price"))) is None


def test_a_fitted_file_is_an_estimator_again(folder: Path) -> None:
    assert NAERegressor.load(folder / "price.nae").n_members == 1
    assert NAEClassifier.load(folder / "sold.nae").classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(("target", "classes"), [("sold", ("no", "yes")), ("garden", ("False", "True")), ("price", ())])
def test_the_task_is_seen_from_the_target(
    nae: Command, folder: Path, tmp_path: Path, target: str, classes: tuple[str, ...]
) -> None:
    path = tmp_path / "m.nae"
    words = ("fit", folder / "homes.parquet", "-t", target, "-o", path, "-q", *TINY)
    assert nae(*words) == (0, "", "")
    assert library.load(path).classes == classes


def test_the_tricky_file_is_fitted_and_predicted(nae: Command, tmp_path: Path) -> None:
    lines = [f'"a;b{i % 3}";{i},5;"two\nlines";{i % 7},25' for i in range(40)]
    data = tmp_path / "tricky.csv"
    data.write_text("\n".join(["\ufefftown;size;note;target ", *lines]), encoding="utf-8")
    path = tmp_path / "m.nae"
    code, _, err = nae("fit", data, "--target", "target", "-o", path, *TINY)
    assert code == 0, err
    assert library.load(path).feature_names == ("town", "size", "note")
    code, _, err = nae("predict", path, data, "-o", tmp_path / "out.parquet")
    assert code == 0, err
    assert read_file(str(tmp_path / "out.parquet")).num_rows == 40


def test_rows_without_a_target_are_left_out_and_said(nae: Command, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("a,y\n" + "".join(f"{i},{i % 5 if i % 4 else ''}\n" for i in range(40)))
    code, _, err = nae("fit", data, "-t", "y", "-o", tmp_path / "m.nae", *TINY)
    assert code == 0
    assert "left out, without a target: 10 rows." in err


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_column_that_counts_the_rows_is_said(nae: Command, tmp_path: Path, start: int) -> None:
    data = tmp_path / "d.csv"
    data.write_text(",a,y\n" + "".join(f"{start + i},{i % 7},{i % 5}\n" for i in range(40)))
    words = ("fit", data, "-t", "y", "-o", tmp_path / "m.nae", *TINY)
    said = "note: Column '' counts the rows, so it will not generalise; leave it out with --ignore '' unless"
    code, _, err = nae(*words)
    assert (code, said in err) == (0, start < 2)
    code, _, err = nae(*words, "--ignore", "")
    assert (code, "note: " in err) == (0, False)
    assert library.load(tmp_path / "m.nae").feature_names == ("a",)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_column_that_names_rows_is_said(nae: Command, tmp_path: Path, how: tuple[str, ...]) -> None:
    data = tmp_path / "d.csv"
    data.write_text("who,y\n" + "".join(f"guest {i},{i % 5}\n" for i in range(50)))
    words = ("fit", data, "-t", "y", "-o", tmp_path / "m.nae", "--test-size", "0", *how, *TINY)
    code, _, err = nae(*words)
    assert code == 0
    assert len(re.findall(r"note: Column 'who' \(\d\d levels in \d\d rows\) looks like an identifier", err)) == 1
    assert "(nae fit --ignore who)" in err
    assert "note: " not in nae(*words, "--category", "who")[2]


def test_the_dial_reaches_the_estimator(nae: Command, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "gam.nae"
    words = ("fit", folder / "homes.parquet", "-t", "price", "--additivity", "1", "-o", path, "-q", *TINY)
    assert nae(*words)[0] == 0
    assert library.load(path).n_experts == 1


@pytest.mark.slow
def test_the_dial_can_choose_itself(nae: Command, tmp_path: Path) -> None:
    data, path = tmp_path / "homes.csv", tmp_path / "auto.nae"
    write_table(make_table(600), str(data))
    code, out, err = nae("fit", data, "-t", "price", "--additivity", "auto", "-o", path, *TINY)
    assert code == 0, err
    assert "Quality on 120 test rows" in out
    assert library.load(path).training.target == "price"


def test_a_number_can_be_a_category(nae: Command, tmp_path: Path) -> None:
    data, path = tmp_path / "d.csv", tmp_path / "m.nae"
    data.write_text("zone,y\n" + "".join(f"{i % 3},{i % 7}\n" for i in range(40)))
    assert nae("fit", data, "-t", "y", "--category", "zone", "-o", path, "-q", *TINY)[0] == 0
    assert library.load(path).schema.features[0].kind == "category"


def test_predictions_are_those_of_the_model(nae: Command, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    code, _, err = nae("predict", folder / "sold.nae", folder / "homes.parquet", "-o", out, "--keep")
    assert (code, err) == (0, f"wrote 300 predictions to {out}.\n")
    found = read_file(str(out))
    expected = library.load(folder / "sold.nae").predict_proba(make_table())
    np.testing.assert_allclose(found.column("probability of yes"), expected[:, 1], rtol=1e-12)
    assert found.column("prediction").to_pylist() == library.load(folder / "sold.nae").predict(make_table()).tolist()
    assert found.column_names[:2] == ["size", "town"]


def test_contributions_in_a_file_add_up_to_the_prediction(nae: Command, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert nae("predict", folder / "price.nae", folder / "homes.parquet", "-o", out, "--contributions")[0] == 0
    found = read_file(str(out))
    names = [name for name in found.column_names if name.startswith("contribution of ")]
    total = sum(np.array(found.column(name)) for name in names) + np.array(found.column("intercept"))
    np.testing.assert_allclose(total, found.column("prediction"))
    assert np.all(np.array(found.column("lower of size")) <= np.array(found.column("contribution of size")))


def test_weights_of_classes_choose_what_is_predicted(nae: Command, folder: Path, tmp_path: Path) -> None:
    model = replace(library.load(folder / "sold.nae"), class_weight=(1e-12, 1.0))
    model.save(tmp_path / "weighted.nae")
    assert nae("predict", tmp_path / "weighted.nae", folder / "homes.parquet", "-o", tmp_path / "out.csv")[0] == 0
    found = read_file(str(tmp_path / "out.csv"))
    assert set(found.column("prediction").to_pylist()) == {"yes"}
    assert min(found.column("probability of yes").to_pylist()) < 0.5


def test_predictions_go_to_stdout(capfdbinary: pytest.CaptureFixture[bytes], folder: Path) -> None:
    assert run(["predict", f"{folder / 'price.nae'}", f"{folder / 'homes.parquet'}", "--format", "jsonl"]) == 0
    said = capfdbinary.readouterr().out
    assert len([json.loads(line)["prediction"] for line in said.splitlines()]) == 300


def test_explain_shows_every_feature_and_the_pairs(nae: Command, folder: Path) -> None:
    code, out, _ = nae("explain", folder / "price.nae")
    assert code == 0
    assert out.index("size") < out.index("garden")  # by importance
    assert "Which features change each other's effect" in out
    assert "town × garden" in out or "size × garden" in out


def test_explain_as_json_can_be_read_back(nae: Command, folder: Path) -> None:
    from nae.explanation import GlobalExplanation, InteractionExplanation, LocalExplanation

    model, data = folder / "price.nae", folder / "homes.parquet"
    explanation = GlobalExplanation.from_json(nae("explain", model, "--json")[1])
    assert explanation.feature_names == ("size", "town", "garden")
    row = LocalExplanation.from_json(nae("explain", model, data, "--row", 2, "--json")[1])
    assert float(row.score[0, 0]) == pytest.approx(library.load(model).predict(make_table())[1])
    pair = InteractionExplanation.from_json(nae("explain", model, "--pair", "size", "town", "--json")[1])
    assert pair.feature_names == ("size", "town")


def test_explain_shows_one_row_one_feature_and_a_pair(nae: Command, folder: Path) -> None:
    model = folder / "price.nae"
    out = nae("explain", model, folder / "homes.parquet", "--row", 1)[1]
    assert "Row 1" in out
    assert "missing" in out  # the first size is
    assert "Köln" in nae("explain", model, "--feature", "town")[1]
    pair = " ".join(nae("explain", model, "--pair", "size", "town")[1].split())
    assert pair.startswith("What size (down) and town (across) do together")


def test_explain_shows_one_row_in_percentage_points(nae: Command, folder: Path) -> None:
    words = (folder / "sold.nae", folder / "homes.parquet", "--row", 1, "--unit", "probability", "--class", "no")
    from nae.explanation import LocalExplanation

    found = LocalExplanation.from_json(nae("explain", *words, "--json")[1])
    code, out, err = nae("explain", *words)
    assert code == 0, err
    assert "Row 1, in percentage points for no" in out
    assert f"contributions = prediction {100 * found.prediction[0, 0]:#.4g}" in " ".join(out.split())
    code, _, err = nae("explain", folder / "sold.nae", "--unit", "probability")
    assert code == 2
    assert "--unit is for rows" in err


def test_explain_gives_reasons(nae: Command, folder: Path, tmp_path: Path) -> None:
    from nae.decisions import Reasons

    words = ("explain", folder / "sold.nae", folder / "homes.parquet", "--reasons", 2, "--toward", "no")
    found = Reasons.from_json(nae(*words, "--json")[1])
    assert len(found) > 100
    assert nae(*words, "--text")[1].strip() == found.text
    code, out, err = nae(*words, "--row", 3, "--unit", "probability", "--reference", "best", "--tolerance", "size=5")
    assert code == 0, err
    assert "What counts towards no, compared with the best values, in percentage points" in " ".join(out.split())
    file = tmp_path / "reasons.toml"
    file.write_text('sentence = "It is the {feature}."\nremarks = false\n')
    out = nae(*words, "--row", 3, "--text", "--reasons-file", file)[1]
    assert out.startswith("Row 3: the probability of no is ")
    assert f"1. It is the {found.names(2)[0]}." in out
    model = folder / "sold.nae"
    for wrong, said in (
        (("explain", model, "--reasons", 2), "--reasons needs a table"),
        (("explain", model, "--text"), "--text need --reasons"),
        ((*words, "--feature", "size"), "--reasons are for rows"),
        ((*words, "--tolerance", "size"), "such as age=1; got 'size'"),
        ((*words, "--row", 9999), "--row must be in"),
    ):
        code, _, err = nae(*wrong)
        assert code == 2
        assert said in " ".join(err.split())


def test_a_feature_is_explained_although_blanks_stand_around_its_name(nae: Command, tmp_path: Path) -> None:
    data, path = tmp_path / "d.csv", tmp_path / "m.nae"
    data.write_text(" plan ,size,y\n" + "".join(f"{'ab'[i % 2]},{i % 9},{i % 7}.5\n" for i in range(60)))
    assert nae("fit", data, "-t", "y", "-o", path, "-q", *TINY)[0] == 0
    assert library.load(path).feature_names == (" plan ", "size")
    for words in (("--feature", "plan"), ("--feature", " plan "), ("--pair", "plan", "size ")):
        code, out, err = nae("explain", path, *words)
        assert code == 0, err
        assert "plan" in out
    assert "No feature is called 'plans'" in nae("explain", path, "--feature", "plans")[2]


def test_either_of_two_classes_is_explained(nae: Command, folder: Path) -> None:
    usual, other = (
        json.loads(nae("explain", folder / "sold.nae", *words, "--json")[1]) for words in ((), ("--class", "no"))
    )
    assert (usual["outputs"], other["outputs"]) == (["yes"], ["no"])
    code, out, err = nae("explain", folder / "sold.nae", folder / "homes.parquet", "--row", 1, "--class", "no")
    assert code == 0, err
    assert "of no; prediction" in out
    assert "What matters for no" in nae("explain", folder / "sold.nae", "--class", "no")[1]
    assert "What matters for yes" in nae("explain", folder / "sold.nae")[1]


def test_a_model_is_fitted_to_speak_for_a_class(nae: Command, folder: Path, tmp_path: Path) -> None:
    data, path = folder / "homes.parquet", tmp_path / "m.nae"
    code, _, err = nae("fit", data, "-t", "sold", "--ignore", "price", "--positive-class", "no", "-o", path, *TINY)
    assert code == 0, err
    assert library.load(path).outputs == ("no",)
    assert "score: the log-odds of no" in nae("show", path)[1]
    code, out, err = nae("compare", path, folder / "sold.nae", data)
    assert code == 0, err
    assert "the same class for" in out


def test_show_is_a_card_with_caps(nae: Command, folder: Path) -> None:
    out = nae("show", folder / "sold.nae")[1]
    assert "predicts one of 2 classes of sold from 3 features" in out
    assert "Whatever the input, size raises the log-odds of yes by at most" in out
    assert "quality on held-out rows: AUC" in out
    card = json.loads(nae("show", folder / "sold.nae", "--json")[1])
    assert card["classes"] == ["no", "yes"]
    assert len(card["caps"]) == 3


def test_the_additivity_that_is_shown_counts_features_by_their_variance(
    nae: Command, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "random.nae"
    explained_model(1)[0].save(path)
    found = library.load(path).explain_global()
    assert f"{found.additivity_weighted:.2f}" != f"{found.additivity:.2f}"
    assert f"weighted additivity {found.additivity_weighted:.2f}" in " ".join(nae("explain", path)[1].split())
    card = json.loads(nae("show", path, "--json")[1])["measures"]
    assert list(card) == ["weighted additivity", "interaction share", "cancellation"]
    assert card["weighted additivity"] == round(found.additivity_weighted, 4)
    path = folder / "price.nae"
    found = library.load(path).explain_global()
    compared = nae("compare", path, path, folder / "homes.parquet")[1]
    assert re.search(rf"weighted additivity\W+{found.additivity_weighted:.2f}\W", compared)
    data, other = folder / "homes.parquet", tmp_path / "other.nae"
    fitted = nae("fit", data, "-t", "price", "--ignore", "sold", "-o", other, *TINY)[1]
    found = library.load(other).explain_global()
    words = f"weighted additivity {found.additivity_weighted:.2f} (mean over features {found.additivity:.2f})"
    assert words in " ".join(fitted.split())


def test_compare_measures_on_rows_no_model_was_trained_on(nae: Command, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "additive.nae"
    data = folder / "homes.parquet"
    words = ("fit", data, "-t", "price", "--ignore", "sold", "--additivity", "1", "-o", other, "-q", *TINY)
    assert nae(*words)[0] == 0
    code, out, err = nae("compare", folder / "price.nae", other, data)
    assert code == 0, err
    assert "On 60 rows that no model was trained on" in out
    assert "knows only the average" in out
    assert "price.nae and additive.nae: predictions differ by" in out


def test_report_measures_on_rows_the_model_was_not_trained_on(nae: Command, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, _, err = nae("report", folder / "price.nae", folder / "homes.parquet", "-o", page)
    assert code == 0, err
    assert "measuring on 60 rows the model was not trained on" in err
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html")
    [content] = re.findall(r'<script type="application/json" id="content">(.*?)</script>', text)
    rows = json.loads(content)["rows"]
    prices = make_table()["price"].to_numpy()  # row 1 is the first, as for nae explain --row
    assert rows["target"] == [[prices[number - 1] for number in rows["number"]]]


def test_report_without_a_target_says_what_it_cannot(nae: Command, folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("size,town,garden\n50,Ulm,true\n60,Ulm,false\n")
    code, _, err = nae("report", folder / "price.nae", data, "-o", tmp_path / "report.html")
    assert code == 0, err
    assert "cannot say how good the model is" in err


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("m.json", ["m.json"]),
        ("m.sql", ["m.query.sql", "m.sql"]),
        ("2-homes.c", ["m2_homes.c", "m2_homes.h"]),
        ("m.onnx", ["m.onnx"]),
    ],
)
def test_export_writes_what_the_ending_says(
    nae: Command, folder: Path, tmp_path: Path, name: str, written: list[str]
) -> None:
    if name.endswith("onnx"):
        pytest.importorskip("onnx")
    code, out, err = nae("export", folder / "price.nae", "-o", tmp_path / name)
    assert (code, out) == (0, ""), err
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir() if path.suffix != ".h")
    assert err.count("wrote ") == len(written)


def test_export_writes_what_is_asked_for(nae: Command, folder: Path, tmp_path: Path) -> None:
    assert nae("export", folder / "price.nae", "--format", "json", "-o", tmp_path / "model")[0] == 0
    assert json.loads((tmp_path / "model").read_text())["outputs"] == ["price"]


def test_doctor_names_versions_and_what_is_missing(nae: Command) -> None:
    found = json.loads(nae("doctor", "--json")[1])
    assert found["nae"] == library.__version__
    versions = {package["name"]: package["version"] for package in found["packages"]}
    assert versions["numpy"] == np.__version__
    assert list(found["engines"]) == ["native", "torch", "gpu", "auto"]
    code, out, _ = nae("doctor")
    assert code == 0
    assert all(sentence in out for sentence in found["engines"].values())


def test_demo_leaves_a_table_and_a_model(nae: Command, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    code, out, _ = nae("demo", "-o", place, "--rows", 300, "--time-limit", "1s")
    assert code == 0
    assert "x1" in out
    assert read_file(str(place / "waves.csv")).num_rows == 300
    assert library.load(place / "waves.nae").feature_names == ("x1", "x2")


def test_names_that_look_like_markup_are_shown_as_they_are(nae: Command, tmp_path: Path) -> None:
    data, path = tmp_path / "d.csv", tmp_path / "m.nae"
    rows = "".join(f"{i},[red]{i % 2}[/red],{i % 5}\n" for i in range(40))
    data.write_text(f"[bold]x[/bold],:smile:,y\n{rows}")
    assert nae("fit", data, "-t", "y", "-o", path, *TINY)[0] == 0
    out = nae("explain", path)[1]
    assert "[bold]x[/bold]" in out
    assert ":smile:" in out


def test_several_classes_are_explained_one_at_a_time(nae: Command, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "town.nae"
    assert nae("fit", folder / "homes.parquet", "-t", "town", "-o", path, "-q", *TINY)[0] == 0
    assert "What matters for Ulm" in nae("explain", path, "--class", "Ulm")[1]
    code, _, err = nae("explain", path, "--class", "Ul")
    assert (code, err) == (2, "error: This model does not explain 'Ul'. Did you mean 'Ulm'?\n")
