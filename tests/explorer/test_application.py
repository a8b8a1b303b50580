"""The HTTP application, over a real connection: answers and refusals, one at a time."""

import concurrent.futures
import json
import logging
import socket
import threading
import time

import pytest
from explore_requests import ask, send

from korean_bert import load_model
from run_scripts.tools import explore
from tests.support.every_test import resident_mib
from tests.support.models.model_folders import write_folder

pytest.importorskip("starlette", reason="the extra explore is not installed")
pytest.importorskip("uvicorn", reason="the extra explore is not installed")
from explore_page import served  # noqa: E402

from explorer import server  # noqa: E402
from explorer.fields import LONGEST_TEXT  # noqa: E402
from explorer.guard import LARGEST_BODY  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_folder(folder)
    return load_model(folder)


@pytest.fixture(scope="module")
def port(model):
    with served(model) as port:
        yield port


def head(port, path, length):
    """The first lines of a request, as a browser sends them before the body."""
    lines = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    return f"{lines}Content-Type: application/json\r\n{length}\r\n\r\n".encode()


@pytest.mark.parametrize("part", ["", "/model.ckpt-3"])
def test_the_program_shows_a_folder_or_a_checkpoint(model, part, monkeypatch):
    shown = []
    monkeypatch.setattr(server, "serve", lambda model, *_: shown.append(model.loaded.source))
    path = f"{model.loaded.folder.path}{part}"
    assert explore.main(["explore", f"--model_dir={path}", "--port=0"]) == 0
    assert shown == [model.loaded.source]


def test_answers(port):
    assert ask(port, "guesses", text="나는 [MASK]").values["masks"]
    assert ask(port, "pieces", text="나는 😀 갔다").values["count"] == 7
    reply = send(port, "GET", "/api/model", Content_Type=None)
    assert reply.values["task"] == "pretraining"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_the_page_s_files(port):
    page = send(port, "GET", "/")
    assert page.status == 200 and b'<script type="module" src="/page/main.js">' in page.body
    for name, kind in (("main.js", "javascript"), ("style.css", "css"), ("texts/ko.json", "json")):
        reply = send(port, "GET", f"/page/{name}")
        assert reply.status == 200 and kind in reply.headers["content-type"]
        assert reply.headers["cache-control"] == "no-store"
    for path in ("/page/../application.py", "/page/..%2fapplication.py", "/page//etc/passwd"):
        assert send(port, "GET", path).status == 404


GOOD = json.dumps({"text": "나는"}).encode()


@pytest.mark.parametrize(
    "method, path, body, status, message",
    (
        ("POST", "/api/pieces", b"", 400, "the body must be JSON"),
        ("POST", "/api/pieces", b"{", 400, "the body must be JSON. Received: '{'"),
        ("POST", "/api/pieces", b"\xff", 400, "the body must be UTF-8"),
        ("POST", "/api/pieces", b"[" * 60000, 400, "the body must be JSON"),
        ("POST", "/api/pieces", b"9" * 60000, 400, "the body must be JSON"),
        ("POST", "/api/pieces", b"[]", 400, "the body must be a JSON object. Received: []"),
        ("POST", "/api/pieces", b"{}", 400, "text must be given"),
        ("POST", "/api/pieces", b'{"text": 3}', 400, "text must be a string. Received: 3"),
        ("POST", "/api/pieces", b'{"text": "a", "x": 1}', 400, "fields must be among text, second"),
        ("POST", "/api/pieces", b'{"text": "\\ud800"}', 400, "holds half of a character"),
        ("POST", "/api/guesses", b'{"text": " "}', 400, "text must not be empty"),
        ("POST", "/api/guesses", GOOD, 400, "a text must hold [MASK]"),
        ("POST", "/api/guesses", b'{"text": "a", "top": true}', 400, "top must be an integer from"),
        ("POST", "/api/guesses", b'{"text": "a", "top": 1e9}', 400, "top must be an integer from"),
        ("POST", "/api/guesses", b'{"text": "a", "top": NaN}', 400, "top must be an integer from"),
        ("POST", "/api/attention", b'{"text": "a", "layer": -1}', 400, "layer must be an integer"),
        ("POST", "/api/attention", b'{"text": "' + b"a " * 40 + b'"}', 400, "reads at most 32."),
        ("POST", "/api/prediction", GOOD, 400, "prediction needs a fine-tuned model"),
        ("POST", "/api/prediction", b'{"text": "a", "options": ["a"]}', 400, "list of 2 or more"),
        ("POST", "/api/search", b'{"query": "a", "lines": []}', 400, "list of 1 or more"),
        ("POST", "/api/search", b'{"query": "a", "lines": [" "]}', 400, "lines must not be empty"),
        ("POST", "/api/nothing", GOOD, 404, "the address must be one of /api/{pieces"),
        ("GET", "/api/pieces", None, 405, "Method Not Allowed: GET /api/pieces"),
        ("DELETE", "/", None, 405, "Method Not Allowed"),
        ("GET", "/nowhere", None, 404, "Not Found: GET /nowhere"),
    ),
)
def test_malformed_requests_are_one_line(port, method, path, body, status, message):
    reply = send(port, method, path, body)
    assert reply.status == status and message in reply.values["error"]
    assert list(reply.values) == ["error", "code", "values"] and "\n" not in reply.values["error"]
    assert len(reply.values["error"]) < 300


def test_long_texts(port):
    reply = ask(port, "pieces", text="가" * 10001)
    assert "10001 characters; at most 10000" in reply.values["error"]
    for fields, code, values in (
        ({"text": "가" * 10001}, "text_too_long", {"most": 10000, "received": 10001}),
        ({"text": "나 " * 40}, "too_many_pieces", {"most": 32, "received": 42}),
    ):
        reply = ask(port, "attention", **fields)
        assert reply.status == 400 and reply.values["code"] == code
        assert values.items() <= reply.values["values"].items()
    assert ask(port, "pieces", text="나 " * (LONGEST_TEXT // 2)).status == 200


@pytest.mark.parametrize(
    "headers, status, message",
    (
        ({"Host": "evil.example"}, 403, "the Host header must be 127.0.0.1 or localhost"),
        ({"Host": "127.0.0.1.evil.example:80"}, 403, "the Host header must be"),
        ({"Host": "[::1]:80"}, 403, "the Host header must be"),
        ({"Host": "localhost:@evil.example"}, 403, "the Host header must be"),
        ({"Host": "localhost:80:80"}, 403, "the Host header must be"),
        ({"Host": ""}, 403, "the Host header must be"),
        ({"Origin": "http://evil.example"}, 403, "requests must come from the page itself"),
        ({"Origin": "null"}, 403, "requests must come from the page itself"),
        ({"Content_Type": "text/plain"}, 415, "Content-Type must be application/json"),
        ({"Content_Type": None}, 415, "Content-Type must be application/json"),
    ),
)
def test_requests_of_other_sites_are_refused(port, headers, status, message):
    reply = send(port, "POST", "/api/pieces", GOOD, **headers)
    assert reply.status == status and message in reply.values["error"]
    if "Host" in headers:
        assert send(port, "GET", "/", **headers).status == 403


def test_names_of_this_machine(port):
    """A tunnel's end has another port."""
    for host in ("localhost", "127.0.0.1", "localhost:9000", f"127.0.0.1:{port}"):
        origin = f"http://{host}"
        assert send(port, "POST", "/api/pieces", GOOD, Host=host, Origin=origin).status == 200


def test_a_large_body_is_refused_unread(port):
    """As is one whose length is not told."""
    for length, status in (
        ("Content-Length: 10000000", b"413"),
        ("Transfer-Encoding: chunked", b"411"),
        ("Content-Length: 10\r\nTransfer-Encoding: chunked", b"411"),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head(port, "/api/pieces", length))
            assert connection.recv(100).startswith(b"HTTP/1.1 " + status)
    spaces = b" " * (LARGEST_BODY - len(GOOD))
    assert send(port, "POST", "/api/pieces", GOOD + spaces).status == 200
    reply = send(port, "POST", "/api/pieces", GOOD + spaces + b" ")
    assert reply.status == 413 and f"at most {LARGEST_BODY} bytes" in reply.values["error"]


@pytest.fixture
def slow(model, monkeypatch):
    """Lets the model compute until it is told to go on; the words that it computed for."""
    go_on, computed, running = threading.Event(), [], threading.Lock()

    def nearest(word, top):
        assert running.acquire(blocking=False)  # one request at a time uses the model
        computed.append(word)
        assert go_on.wait(60)
        time.sleep(0.01)
        running.release()
        return []

    monkeypatch.setattr(model, "nearest", nearest)
    yield go_on, computed
    go_on.set()


def wait_for(computed):
    end = time.monotonic() + 60
    while not computed and time.monotonic() < end:
        time.sleep(0.01)


def test_requests_wait_for_each_other(port, slow):
    """Only what uses no model is answered meanwhile."""
    go_on, computed = slow
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        found = [pool.submit(ask, port, "neighbours", word=word) for word in "나는학교에"]
        wait_for(computed)
        assert send(port, "GET", "/api/model").status == 200
        go_on.set()
        assert [each.result().status for each in found] == [200] * 5
    assert sorted(computed) == sorted("나는학교에")


def test_a_thousand_lines_are_searched(port):
    """Of usual sentences, which are three bytes a character."""
    lines = [f"나는 학교에 갔다 {'가' * 60} {number}" for number in range(1000)]
    hits = ask(port, "search", query="나는 학교에 갔다", lines=lines, top=3).values["hits"]
    assert len(hits) == 3 and {hit["text"] for hit in hits} <= {*lines}


@pytest.mark.parametrize(
    "name, fields, code, most",
    (
        ("guesses", {"text": "[MASK]" * 31}, "too_many_masks", 30),
        ("prediction", {"text": "a", "options": ["a"] * 21}, "too_many_options", 20),
        ("search", {"query": "a", "lines": ["a"] * 1001}, "too_many_lines", 1000),
    ),
)
def test_too_many(port, name, fields, code, most):
    reply = ask(port, name, **fields)
    assert (reply.status, reply.values["code"]) == (400, code)
    assert reply.values["values"] == {"most": most, "received": most + 1}


def test_who_has_gone_is_not_computed_for(port, slow):
    go_on, computed = slow
    body = json.dumps({"word": "학교"}).encode()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, port, "neighbours", word="나")
        wait_for(computed)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head(port, "/api/neighbours", f"Content-Length: {len(body)}") + body)
            time.sleep(0.2)  # until it waits for the model
        time.sleep(0.2)  # until the server knows that its sender has gone
        go_on.set()
        assert first.result().status == 200
    assert ask(port, "neighbours", word="는").status == 200
    assert computed == ["나", "는"]


def test_who_goes_before_the_end_of_a_request_is_no_error(port, caplog, monkeypatch):
    """Nothing is printed, as of a browser that leaves the page while it sends."""
    log = logging.getLogger("uvicorn.error")
    monkeypatch.setattr(log, "handlers", [caplog.handler])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head(port, "/api/pieces", "Content-Length: 100") + b"{")
        time.sleep(0.2)  # until the server waits for the rest
    assert ask(port, "pieces", text="나는").status == 200
    time.sleep(0.3)  # a traceback is printed after the answer
    assert not caplog.records


def test_an_error_of_the_program(port, model, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(model, "nearest", fail)
    reply = ask(port, "neighbours", word="나")
    assert reply.status == 500 and "ZeroDivisionError" in reply.values["error"]
    assert reply.values["code"] == "failed" and "secret" not in reply.body.decode()
    assert ask(port, "pieces", text="나는").status == 200


@pytest.mark.slow
def test_memory_does_not_grow(port):
    """However many texts of other lengths are asked about, good and bad."""

    def round_of(number):
        for length in range(1, 15, 2):
            text = f"{'나는 ' * length}{number} [MASK]"
            assert ask(port, "guesses", text=text, max_pieces=2).status in (200, 400)
            ask(port, "attention", text=text, layer=1)
            ask(port, "similarity", first=text, second="나")
            ask(port, "word", word="나", first=text, second="나는")
            send(port, "POST", "/api/pieces", b"[" * 60000)

    for number in range(3):
        round_of(number)
    before = resident_mib()
    for number in range(8):
        round_of(number)
    assert resident_mib() - before < 14  # 70 KB a request
