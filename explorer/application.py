"""The HTTP application: the page's files, and answers in JSON."""

import asyncio
import functools
import json
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bert_common.errors import InputError
from explorer.answers import ANSWERS, Explored, describe
from explorer.fields import read_fields
from explorer.guard import Guard, refusal
from explorer.model_queue import ModelQueue, QueueFullError

PAGE = Path(__file__).parent / "page"

# Seconds that a request may take to arrive: it is a few kilobytes on one machine.
ARRIVAL = 10

LONGEST_TICKET = 64


def make_application(model, vocabularies=(), queue=None):
    """The application for a model.

    Args:
        model: a `korean_bert.Model`.
        vocabularies: (name, function from a text to its pieces) of others, to compare with.
        queue: the `ModelQueue`; None: a new one.
    """
    queue = ModelQueue() if queue is None else queue
    explored = Explored(model, tuple(vocabularies))

    async def show_page(request):
        return FileResponse(PAGE / "index.html")

    async def show_model(request):
        return as_json(describe(explored))

    async def show_queue(request):
        ticket = request.query_params.get("ticket", "")
        return as_json({"position": queue.position(ticket), "length": len(queue)})

    async def answer(request):
        name = request.path_params["name"]
        if name not in ANSWERS:
            return refusal(404, f"the address must be one of /api/{{{', '.join(ANSWERS)}}}")
        function, fields = ANSWERS[name]
        try:
            async with asyncio.timeout(ARRIVAL):
                content = await request.body()
        except TimeoutError:
            return refusal(408, f"a request must arrive within {ARRIVAL} seconds")
        values = read_fields(content, fields)
        call = functools.partial(function, explored, **values)
        ticket = request.headers.get("x-ticket", "")[:LONGEST_TICKET]
        found = await or_gone(queue.call(ticket, call), request)
        return Response(status_code=499) if found is None else as_json(found)

    routes = [
        Route("/", show_page),
        Route("/api/model", show_model),
        Route("/api/queue", show_queue),
        Route("/api/{name}", answer, methods=["POST"]),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    handlers = {
        InputError: lambda request, error: refusal(400, one_line(error)),
        QueueFullError: lambda request, error: refusal(503, one_line(error)),
        HTTPException: refuse_address,
        Exception: report,
    }
    guard = [Middleware(Guard)]
    return Starlette(routes=routes, exception_handlers=handlers, middleware=guard)


async def or_gone(work, request):
    """The result of a coroutine, or None, with the coroutine cancelled, where the browser left."""
    work = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(wait_until_gone(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return await work if work.done() else None
    finally:
        work.cancel()
        gone.cancel()


async def wait_until_gone(request):
    """Returns when the other side has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def as_json(values):
    """An answer; numbers that JSON lacks are an error."""
    content = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(content.encode("utf-8"), media_type="application/json")


def one_line(error):
    return " ".join(str(error).split())


def refuse_address(request, error):
    """For an address or a method that is not there."""
    return refusal(error.status_code, f"{error.detail}: {request.method} {request.url.path[:200]}")


def report(request, error):
    """For an error of the program: its name to the page; uvicorn prints the rest."""
    return refusal(500, f"the program failed: {type(error).__name__}; the terminal says where")
