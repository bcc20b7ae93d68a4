import json
import socket

import httpx
import pytest

from tests.serving.conftest import LIMITS

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("rows", "status", "field", "words"),
    [
        ('[{"size": "12"}]', 422, "size", "valid number"),
        ('[{"size": "NaN"}]', 422, "size", "valid number"),
        ('[{"size": NaN}]', 422, "size", "finite number"),
        ('[{"size": Infinity}]', 422, "size", "finite number"),
        ('[{"size": 1e999}]', 422, "size", "finite number"),
        ('[{"size": -1e999}]', 422, "size", "finite number"),
        (f'[{{"size": {"9" * 400}}}]', 422, "size", ""),
        (f'[{{"size": {"9" * 5000}}}]', 422, "size", "finite number"),
        ('[{"size": true}]', 422, "size", "valid number"),
        ('[{"size": [1]}]', 422, "size", "valid number"),
        ('[{"size": {"a": 1}}]', 422, "size", "valid number"),
        ('[{}, {"garden": "yes"}]', 422, "garden", "Row 1, feature 'garden'"),
        ('[{"garden": 2}]', 422, "garden", "valid boolean"),
        ('[{"town": 5}]', 422, "town", "valid string"),
        ('[{"town": ["Ulm"]}]', 422, "town", "valid string"),
        ('[{"zone": [1]}]', 422, "zone", "text or a number"),
        ('[{"zone": 1e999}]', 422, "zone", "text or a number"),
        ('[{"sise": 1}]', 422, "sise", "Did you mean 'size'?"),
        ('[{"<script>": 1}]', 422, "<script>", "the model has no feature"),
        ("[]", 422, None, "at least 1 item"),
        ("{}", 422, None, "The body must be"),
        ("null", 422, None, "The body must be"),
        ("[1]", 422, None, "Row 0 must be an object"),
        ("[[]]", 422, None, "Row 0 must be an object"),
        (json.dumps([{}] * (LIMITS.max_rows + 1)), 422, None, "at most 50 rows"),
        ('[{"town": "\\ud800"}]', 400, None, "must be JSON"),
        ("[{", 400, None, "must be JSON"),
    ],
)
def test_a_wrong_row_is_refused_with_its_field(
    client: httpx.Client, rows: str, status: int, field: str | None, words: str
) -> None:
    for path in ("/predict", "/explain"):
        if "at most" in words and path == "/explain":
            words = words.replace("50", "20")
        answer = client.post(path, content=f'{{"rows": {rows}}}', headers=JSON)
        assert answer.status_code == status, answer.text
        assert answer.json()["field"] == field
        assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"[" * 9_000, 400),
        (b'{"rows":' * 2_000, 400),
        (b'{"rows": [{"size": ' + b"[" * 9_000, 400),
        (b'{"rows": [{"size": ' + b"[" * 150 + b"]" * 150 + b"}]}", 422),
        (b"[]", 422),
        (b'"rows"', 422),
        (b"{}", 422),
        (b'{"rows": [{}], "more": 1}', 422),
        (b'{"rows": [{}]} {}', 400),
        (b"\x00", 400),
    ],
)
def test_a_wrong_body_is_refused(client: httpx.Client, body: bytes, status: int) -> None:
    answer = client.post("/predict", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_refused(client: httpx.Client, kind: str) -> None:
    answer = client.post("/predict", content=b'{"rows": [{}]}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]


def test_a_charset_beside_the_content_type_is_fine(client: httpx.Client) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    assert client.post("/predict", content=b'{"rows": [{}]}', headers=headers).status_code == 200


def test_a_compressed_body_is_refused(client: httpx.Client) -> None:
    answer = client.post("/predict", content=b"x", headers={**JSON, "content-encoding": "gzip"})
    assert answer.status_code == 415


def test_a_large_body_is_refused_before_it_is_read(client: httpx.Client) -> None:
    answer = client.post("/predict", content=b" " * (LIMITS.max_body_bytes + 1), headers=JSON)
    assert answer.status_code == 413
    assert "at most 20000 bytes" in answer.json()["error"]


def test_a_body_that_does_not_say_its_length_is_cut_off(client: httpx.Client) -> None:
    def pieces() -> object:
        for _ in range(30):
            yield b" " * 1000

    answer = client.post("/predict", content=pieces(), headers=JSON)
    assert answer.status_code == 413


def test_a_length_that_is_announced_but_absent_is_refused_at_once(client: httpx.Client) -> None:
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=10) as wire:
        head = ["POST /predict HTTP/1.1", "Host: x", "Content-Type: application/json", "Content-Length: 999999999999"]
        wire.sendall("\r\n".join([*head, "", ""]).encode())
        assert b" 413 " in wire.recv(1000).split(b"\r\n")[0]


@pytest.mark.parametrize("causes", ["0", "21", "many", "1e3", ""])
def test_a_wrong_parameter_is_refused_with_its_name(client: httpx.Client, causes: str) -> None:
    answer = client.post("/explain", params={"causes": causes}, json={"rows": [{}]})
    assert answer.status_code == 422
    assert answer.json()["field"] == "causes"


@pytest.mark.parametrize(("method", "path"), [("GET", "/predict"), ("DELETE", "/model"), ("POST", "/healthz")])
def test_another_method_is_refused_and_says_which_are_not(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"]
    assert answer.json()["error"] == "Method Not Allowed."


def test_an_unknown_path_is_not_found(client: httpx.Client) -> None:
    assert client.get("/predictt").status_code == 404
    assert client.get("/models/none/schema").status_code == 404
