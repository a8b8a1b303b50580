"""Defines the HTTP application, which serves the page's files and answers in JSON."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bert_common.errors import InputError
from explorer.answers import ANSWERS, Explored, Vocabulary, describe
from explorer.errors import RequestError, malformed, request_error
from explorer.fields import read_fields
from explorer.guard import Guard, refusal
from explorer.model_queue import ModelQueue

if TYPE_CHECKING:
    from korean_bert.model import Model

PAGE = Path(__file__).parent / "page"

# Seconds that a request may take to arrive: it has a few kilobytes and stays on one machine.
ARRIVAL = 10

LONGEST_TICKET = 64

# The status of an answer to a browser that has left, which nobody reads.
GONE = 499

Result = TypeVar("Result")


def make_application(
    model: "Model", vocabularies: Iterable[Vocabulary] = (), queue: ModelQueue | None = None
) -> Starlette:
    """Makes the application for a model, with other vocabularies to compare it with."""
    queue = ModelQueue() if queue is None else queue
    explored = Explored(model, tuple(vocabularies))

    async def show_page(request):
        return FileResponse(PAGE / "index.html")

    async def show_model(request):
        return JSONResponse(describe(explored))

    async def show_queue(request):
        ticket = request.query_params.get("ticket", "")
        return JSONResponse({"position": queue.position(ticket), "length": len(queue)})

    async def answer(request):
        name = request.path_params["name"]
        if name not in ANSWERS:
            message = f"the address must be one of /api/{{{', '.join(ANSWERS)}}}"
            return refusal(404, malformed(message))
        function, fields = ANSWERS[name]
        try:
            async with asyncio.timeout(ARRIVAL):
                content = await request.body()
        except TimeoutError:
            return refusal(408, RequestError("late", seconds=ARRIVAL))
        except ClientDisconnect:
            return Response(status_code=GONE)
        values = read_fields(content, fields)

        def call(check_asker):
            return function(dataclasses.replace(explored, check_asker=check_asker), **values)

        ticket = request.headers.get("x-ticket", "")[:LONGEST_TICKET]
        found = await or_gone(queue.call(ticket, call), request)
        return Response(status_code=GONE) if found is None else JSONResponse(found)

    routes = [
        Route("/", show_page),
        Route("/api/model", show_model),
        Route("/api/queue", show_queue),
        Route("/api/{name}", answer, methods=["POST"]),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    handlers: dict[Any, Callable[..., Response]] = {
        InputError: refuse,
        HTTPException: refuse_address,
        Exception: report,
    }
    guard = [Middleware(Guard)]
    return Starlette(routes=routes, exception_handlers=handlers, middleware=guard)


async def or_gone(work: Coroutine[Any, Any, Result], request: Request) -> Result | None:
    """Returns the result of a coroutine; cancels it and returns None if the browser leaves."""
    work = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(wait_until_gone(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return await work if work.done() else None
    finally:
        work.cancel()
        gone.cancel()


async def wait_until_gone(request: Request) -> None:
    """Returns when the other side has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refuse(request: Request, error: InputError) -> Response:
    """Returns the response to a request that cannot be answered, or not yet."""
    error = request_error(error)
    return refusal(503 if error.code == "queue_full" else 400, error)


def refuse_address(request: Request, error: HTTPException) -> Response:
    """Returns the response to a request for an unknown address or method."""
    message = f"{error.detail}: {request.method} {request.url.path[:200]}"
    return refusal(error.status_code, malformed(message))


def report(request: Request, error: Exception) -> Response:
    """Reports the name of a program error to the page; uvicorn prints the rest."""
    return refusal(500, RequestError("failed", error=type(error).__name__))
