"""The HTTP application, over a real connection: answers, refusals, the queue."""

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
from tests.support.models.model_folders import write_folder

pytest.importorskip("starlette", reason="the extra explore is not installed")
pytest.importorskip("uvicorn", reason="the extra explore is not installed")
from explore_page import served  # noqa: E402

from explorer import application, server  # noqa: E402
from explorer.fields import LONGEST_TEXT  # noqa: E402
from explorer.guard import LARGEST_BODY  # noqa: E402
from explorer.model_queue import LONGEST  # noqa: E402


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
    lines = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Ticket: gone\r\n"
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
        ("POST", "/api/pieces", b'{"text": "\\ud800"}', 400, "text must be Unicode text"),
        ("POST", "/api/guesses", b'{"text": " "}', 400, "text must not be empty"),
        ("POST", "/api/guesses", GOOD, 400, "a text must hold [MASK]"),
        ("POST", "/api/guesses", b'{"text": "a", "top": true}', 400, "top must be an integer from"),
        ("POST", "/api/guesses", b'{"text": "a", "top": 1e9}', 400, "top must be an integer from"),
        ("POST", "/api/guesses", b'{"text": "a", "top": NaN}', 400, "top must be an integer from"),
        ("POST", "/api/attention", b'{"text": "a", "layer": -1}', 400, "layer must be an integer"),
        ("POST", "/api/attention", b'{"text": "' + b"a " * 40 + b'"}', 400, "at most 32 tokens"),
        ("POST", "/api/prediction", GOOD, 400, "prediction needs a fine-tuned model"),
        ("POST", "/api/prediction", b'{"text": "a", "options": ["a"]}', 400, "list of 2 to 20"),
        ("POST", "/api/search", b'{"query": "a", "lines": []}', 400, "list of 1 to 1000"),
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
    assert "at most 10000 characters" in ask(port, "pieces", text="가" * 10001).values["error"]
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
    """Before it is sent, or, where its length is not told, after a little of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head(port, "/api/pieces", "Content-Length: 10000000"))
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    sent, answered = 0, b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head(port, "/api/pieces", "Transfer-Encoding: chunked"))
        connection.settimeout(0.2)
        while not answered and sent < 10_000_000:
            connection.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
            sent += 0x4000
            try:
                answered = connection.recv(100)
            except TimeoutError:
                continue
    assert answered.startswith(b"HTTP/1.1 413 ") and sent <= 4 * LARGEST_BODY
    spaces = b" " * (LARGEST_BODY - len(GOOD))
    assert send(port, "POST", "/api/pieces", GOOD + spaces).status == 200
    reply = send(port, "POST", "/api/pieces", GOOD + spaces + b" ")
    assert reply.status == 413 and f"at most {LARGEST_BODY} bytes" in reply.values["error"]


def test_a_body_that_does_not_arrive(port, monkeypatch):
    monkeypatch.setattr(application, "ARRIVAL", 0.2)
    reply = send(port, "POST", "/api/pieces", b"{", Content_Length="50")
    assert reply.status == 408


def test_what_is_no_http(port):
    for content in (b"\x16\x03\x01 hello", b"GET / HTTP/1.1\r\nHost", b"\r\n" * 9, b"A" * 10**6):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            try:
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1000)[:12] in (b"", b"HTTP/1.1 400")
            except OSError:  # it was closed before all was sent
                pass
    assert ask(port, "pieces", text="나는").status == 200


@pytest.fixture
def slow(model, monkeypatch):
    """Lets the model compute until it is told to go on; the most calls at a time."""
    go_on, started, running, most = threading.Event(), threading.Event(), [], [0]

    def nearest(word, top):
        running.append(word)
        most[0] = max(most[0], len(running))
        started.set()
        assert go_on.wait(60)
        time.sleep(0.01)
        running.remove(word)
        return []

    monkeypatch.setattr(model, "nearest", nearest)
    yield go_on, started, most
    go_on.set()


def position(port, ticket):
    return send(port, "GET", f"/api/queue?ticket={ticket}").values["position"]


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_request_knows_its_place(port, slow):
    go_on, started, most = slow
    body = json.dumps({"word": "나"}).encode()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = []
        for number in range(3):
            ticket = f"t{number}"
            found.append(pool.submit(send, port, "POST", "/api/neighbours", body, X_Ticket=ticket))
            wait_for(lambda ticket=ticket, number=number: position(port, ticket) == number)
        assert position(port, "unknown") is None
        go_on.set()
        assert [each.result().status for each in found] == [200] * 3
    wait_for(lambda: send(port, "GET", "/api/queue").values["length"] == 0)
    assert most == [1]


def test_fifty_at_once(port, slow):
    """One is computed, as many wait as may, the others are refused; then all goes on."""
    go_on, started, most = slow
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        found = [pool.submit(ask, port, "neighbours", word="나") for _ in range(50)]
        wait_for(lambda: sum(each.done() for each in found) == 50 - LONGEST - 1)
        assert send(port, "GET", "/api/queue").values["length"] == LONGEST + 1
        go_on.set()
        replies = [each.result() for each in found]
    assert [reply.status for reply in replies].count(200) == LONGEST + 1 and most == [1]
    refused = [reply for reply in replies if reply.status != 200]
    assert all((r.status, r.values["code"]) == (503, "queue_full") for r in refused)
    assert f"at most {LONGEST} requests may wait" in refused[0].values["error"]
    assert ask(port, "pieces", text="나는").status == 200


def test_a_thousand_lines_are_searched(port):
    """Of usual sentences, which are three bytes a character."""
    lines = [f"나는 학교에 갔다 {'가' * 60} {number}" for number in range(1000)]
    hits = ask(port, "search", query="나는 학교에 갔다", lines=lines, top=3).values["hits"]
    assert len(hits) == 3 and {hit["text"] for hit in hits} <= {*lines}


def test_a_search_ends_when_its_asker_has_left(port, model, monkeypatch):
    """It stops before its next [MASK]."""
    begun, searched = threading.Event(), []

    def fill_mask(text, top, *, max_pieces, before_each):
        for number in range(600):
            before_each()
            searched.append(number)
            begun.set()
            time.sleep(0.1)

    monkeypatch.setattr(model, "fill_mask", fill_mask)
    body = json.dumps({"text": "[MASK]"}).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head(port, "/api/guesses", f"Content-Length: {len(body)}") + body)
        assert begun.wait(60)
    wait_for(lambda: send(port, "GET", "/api/queue").values["length"] == 0)
    assert len(searched) < 100


def test_too_many_masks(port):
    reply = ask(port, "guesses", text="[MASK]" * 31)
    assert (reply.status, reply.values["code"]) == (400, "too_many_masks")
    assert reply.values["values"] == {"most": 30, "received": 31}


def test_who_has_gone_is_not_waited_for(port, slow):
    go_on, started, most = slow
    body = json.dumps({"word": "나"}).encode()
    asked = head(port, "/api/neighbours", f"Content-Length: {len(body)}") + body
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, port, "neighbours", word="나")
        assert started.wait(60)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(asked)
            wait_for(lambda: position(port, "gone") == 1)
        wait_for(lambda: position(port, "gone") is None)
        go_on.set()
        assert first.result().status == 200


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


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


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
    before = resident()
    for number in range(8):
        round_of(number)
    assert resident() - before < 15e6  # 70 KB a request
