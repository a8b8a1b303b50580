"""Requests to explore's page, as a browser or another program sends them."""

import http.client
import json
from typing import NamedTuple


class Reply(NamedTuple):
    status: int
    values: object  # the JSON of the body
    headers: dict
    body: bytes


def send(port, method, path, body=None, timeout=120, **headers):
    """Sends a request; a header whose value is None is left out."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **names}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in given:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        if body is not None:
            connection.send(body)
        reply = connection.getresponse()
        content = reply.read()
    finally:
        connection.close()
    is_json = reply.getheader("Content-Type", "").startswith("application/json")
    values = json.loads(content) if is_json else None
    return Reply(reply.status, values, dict(reply.getheaders()), content)


def ask(port, name, /, **fields):
    """What the page gets for a question."""
    body = json.dumps(fields, ensure_ascii=False).encode("utf-8")
    return send(port, "POST", f"/api/{name}", body)
