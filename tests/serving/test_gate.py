"""Who may ask the server: names, tokens, and requests that say their length twice."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from nae.errors import ConfigError
from nae.serving.gate import hosts_of, is_loopback, read_token
from tests.serving.conftest import serving

TOKEN = "-".join(["correct", "horse", "battery"])


@pytest.fixture(scope="module")
def client(models: Path) -> Iterator[httpx.Client]:
    with serving(models / "number.nae", token=TOKEN, hosts=hosts_of("127.0.0.1", ["Nae.example"])) as found:
        yield found


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        ("", 401),
        ("Bearer", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        (b"Bearer \xff\xfe", 401),
    ],
)
def test_only_the_token_opens(client: httpx.Client, sent: str | bytes, status: int) -> None:
    for path in ("/model", "/metrics", "/openapi.json", "/nowhere"):
        answer = client.get(path, headers={"authorization": sent})
        assert answer.status_code == (404 if path == "/nowhere" and status == 200 else status)
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    answer = client.post("/predict", json={"rows": [{}]}, headers={"authorization": sent})
    assert answer.status_code == status


def test_health_needs_no_token(client: httpx.Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:80", 200),
        ("nae.example", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("", 421),
    ],
)
def test_a_server_answers_to_its_names_alone(client: httpx.Client, host: str, status: int) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize(("host", "expected"), [("::1", True), ("[::1]", True), ("127.0.0.9", True), ("[::]", False)])
def test_an_address_may_be_written_as_in_a_url(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_names_follow_the_address() -> None:
    assert hosts_of("127.0.0.2") == ("localhost", "127.0.0.1", "::1", "127.0.0.2")
    assert hosts_of("192.0.2.1") is None
    assert hosts_of("192.0.2.1", ["[FE80::1]"]) == ("fe80::1",)


def test_a_length_that_is_said_twice_is_refused_and_the_connection_ends(client: httpx.Client) -> None:
    head = ["POST /predict HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Content-Length: 5"]
    inner = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=10) as wire:
        wire.sendall("\r\n".join([*head, "Transfer-Encoding: chunked", "", "0", "", inner]).encode())
        found = b"".join(iter(lambda: wire.recv(65536), b""))
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"this one has both" in found
    assert found.count(b"HTTP/1.1") == 1


def test_a_token_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    with pytest.raises(ConfigError, match=r"The token cannot be read from .*; No such file"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize("text", ["", "short", "two words that are long", "ü" * 20, "x" * 5000])
def test_a_token_that_cannot_be_one_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"A token must have 16 to 4096 visible ASCII characters; .* holds something"):
        read_token(path)


def test_the_document_lists_what_the_server_refuses(client: httpx.Client, models: Path) -> None:
    document = client.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            has_token = path != "/healthz"
            assert {"400", "408", "421", "503"} <= set(operation["responses"])
            assert ("401" in operation["responses"]) == ("security" in operation) == has_token
    assert {"404", "413", "415", "422"} <= set(document["paths"]["/predict"]["post"]["responses"])
    assert "404" in document["paths"]["/model"]["get"]["responses"]
    with serving(models / "number.nae") as open_to_all:
        document = open_to_all.get("/openapi.json").json()
        assert "securitySchemes" not in document["components"]
        assert not {"401", "421"} & set(document["paths"]["/predict"]["post"]["responses"])
