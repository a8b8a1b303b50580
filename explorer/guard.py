"""Rejects large requests and requests from other sites before anything else sees them."""

import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.errors import RequestError, malformed

# The page's host names in a browser on this machine, also through an SSH tunnel, whose port may
# differ. A site that lets its own name point at 127.0.0.1 sends that name.
HOSTS = ("127.0.0.1", "localhost")
HOST = re.compile(f"({'|'.join(map(re.escape, HOSTS))})(:[0-9]{{1,5}})?")

# In bytes, as a browser sends them: a thousand lines to search of 80 Korean characters each. The
# longest texts of two fields take a quarter of it.
LARGEST_BODY = 2**18

HEADERS = {
    # The page loads only its own files.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",  # answers contain texts of users; the files are local anyway
}


def refusal(status: int, error: RequestError, **headers: str) -> JSONResponse:
    """Returns a response with the one-line message, the code and the values of an error."""
    content = {"error": str(error), "code": error.code, "values": error.values}
    return JSONResponse(content, status, headers)


class Guard:
    """An ASGI application that checks requests before it passes them to another application."""

    def __init__(self, application: ASGIApp) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                given = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *given]}
            await send(message)

        problem = check_headers(scope["method"], Headers(scope=scope))
        if problem is not None:
            await problem(scope, receive, send_with_headers)
            return
        await self.application(scope, receive, send_with_headers)


def check_headers(method: str, headers: Headers) -> JSONResponse | None:
    """Returns the rejection of a request for its headers alone, or None."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        names = " or ".join(HOSTS)
        return refusal(403, malformed(f"the Host header must be {names}. Received: {hosts!r}"))
    origin = headers.getlist("origin")
    if origin not in ([], [f"http://{hosts[0]}"]):
        message = f"requests must come from the page itself. Received: {origin!r}"
        return refusal(403, malformed(message))
    # The rest of a rejected body is not read, so the connection ends.
    if "transfer-encoding" in headers:  # a body of any length
        message = "a request must have a Content-Length. Received: Transfer-Encoding"
        return refusal(411, malformed(message), connection="close")
    length = headers.get("content-length", "0")
    if int(length) > LARGEST_BODY:
        error = RequestError("too_large", most=LARGEST_BODY, received=length)
        return refusal(413, error, connection="close")
    # Another site can send the types of forms, but not this type without a preflight request.
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and kind != "application/json":
        message = f"Content-Type must be application/json. Received: {kind!r}"
        return refusal(415, malformed(message))
    return None
