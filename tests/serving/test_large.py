"""Large bodies: refused at the first thing that is wrong, and nobody else waits for them."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import nae
from nae.serving import Limits
from nae.serving.errors import RequestError
from nae.serving.rows import RowReader
from tests.serving.conftest import serving
from tests.serving.test_answers import records

MANY = 20_000
JSON = {"content-type": "application/json"}


def listed(item: bytes) -> bytes:
    return b",".join([item] * MANY)


FIELDS = b",".join(b'"k%d":1' % i for i in range(MANY))


@pytest.fixture(scope="module")
def reader(models: Path) -> RowReader:
    return RowReader(nae.load(models / "number.nae").schema, max_rows=10_000)


@pytest.mark.parametrize(
    ("body", "words", "row"),
    [
        (b'{"rows":[{},{' + FIELDS + b"}]}", "Row 1 must have one field per feature, of which there are 5", 1),
        (b'{"rows":[{' + listed(b'"size" : 1') + b"}]}", "Row 0 must have one field per feature", 0),
        (b'{"rows":[{' + listed(b'"a\\"}:":1') + b"}]}", "Row 0 must have one field per feature", 0),
        (b'{"rows":[{}],' + FIELDS + b"}", "with no other field", None),
        (b'{"rows":[' + listed(b"1") + b"]}", "Row 0 must be an object", 0),
        (b'{"rows":[{}, ' + listed(b"null") + b"]}", "Row 1 must be an object", 1),
        (b'{"rows":[' + listed(b'"{"') + b"]}", "Row 0 must be an object", 0),
        (b'{"rows":[' + listed(b"[]") + b"]}", "Row 0 must be an object", 0),
        (b'{"rows":[' + listed(b"{}") + b"]}", "at most 10000 rows", None),
        (b'{"rows":[{"size":[' + listed(b"[]") + b"]}]}", "Row 0, feature 'size': the value must be a number", 0),
        (b'{"rows":[{"size":{' + listed(b'"a":1') + b"}}]}", "it is a list or an object", 0),
        (b"[" + listed(b"1") + b"]", "The body must be", None),
        (b'{"rows":{' + listed(b'"a":1') + b"}}", "The body must be", None),
    ],
)
def test_a_large_body_is_refused_before_anything_is_made_of_it(
    reader: RowReader, monkeypatch: pytest.MonkeyPatch, body: bytes, words: str, row: int | None
) -> None:
    monkeypatch.setattr(reader, "_validator", None)  # it would fail, were it asked
    with pytest.raises(RequestError, match=words) as caught:
        reader.read(body)
    assert (caught.value.status, caught.value.row) == (422, row)


def test_a_large_body_that_is_right_is_read_whatever_its_texts_hold(reader: RowReader) -> None:
    texts = ['a":1,"b', "\\", '\\"', "{[", "]}", ",1", "a: b, c", '{"rows":[{}]}', "\\\\\"'"]
    rows = [{**row, "town": texts[i % len(texts)]} for i, row in enumerate(records(3_000))]
    for text in (json.dumps({"rows": rows}), json.dumps({"rows": rows}, indent=1, ensure_ascii=False)):
        assert reader.read(text.encode()) == rows


def test_complaints_are_made_about_the_first_wrong_row_alone(reader: RowReader) -> None:
    body = json.dumps({"rows": [{"size": "x", "rooms": "y"}] * 10_000}).encode()
    started = time.process_time()
    with pytest.raises(RequestError, match="Row 0, feature 'size': Input should be a valid number"):
        reader.read(body)
    assert time.process_time() - started < 0.1


def test_four_of_the_largest_requests_leave_others_alone(models: Path) -> None:
    body = b'{"rows":[{' + b",".join(b'"k%d":1' % i for i in range(1_200_000)) + b"}]}"
    with serving(models / "number.nae", limits=Limits()) as client, ThreadPoolExecutor(4) as pool:
        large = [pool.submit(httpx.post, f"{client.base_url}/predict", content=body, headers=JSON) for _ in range(4)]
        slowest = 0.0
        while not all(one.done() for one in large):
            started = time.perf_counter()
            assert client.get("/healthz").status_code == 200
            slowest = max(slowest, time.perf_counter() - started)
            time.sleep(0.01)
    assert [one.result().status_code for one in large] == [422] * 4
    assert slowest < 1
