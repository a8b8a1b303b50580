"""Defines the HTTP application, which serves the page's files and answers in JSON."""

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable, Iterable
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

if TYPE_CHECKING:
    from korean_bert.model import Model

PAGE = Path(__file__).parent / "page"

# The status of an answer to a browser that has left, which nobody reads.
GONE = 499

Result = TypeVar("Result")


def make_application(
    model: "Model", vocabularies: Iterable[Vocabulary], thread: concurrent.futures.Executor
) -> Starlette:
    """Makes the application for a model, with other vocabularies to compare it with.

    Answers are computed in `thread`, one after the other.
    """
    explored = Explored(model, tuple(vocabularies))

    async def show_page(request):
        return FileResponse(PAGE / "index.html")

    async def show_model(request):
        return JSONResponse(describe(explored))

    async def answer(request):
        name = request.path_params["name"]
        if name not in ANSWERS:
            message = f"the address must be one of /api/{{{', '.join(ANSWERS)}}}"
            return refusal(404, malformed(message))
        function, fields = ANSWERS[name]
        try:
            content = await request.body()
        except ClientDisconnect:
            return Response(status_code=GONE)
        call = functools.partial(function, explored, **read_fields(content, fields))
        work = asyncio.get_running_loop().run_in_executor(thread, call)
        found = await or_gone(work, request)
        return Response(status_code=GONE) if found is None else JSONResponse(found)

    routes = [
        Route("/", show_page),
        Route("/api/model", show_model),
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


async def or_gone(work: asyncio.Future[Result], request: Request) -> Result | None:
    """Returns the result of a future; cancels it and returns None if the browser leaves.

    A function that waits for its thread is then not called; one that runs is finished.
    """
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
    """Returns the response to a request that cannot be answered."""
    return refusal(400, request_error(error))


def refuse_address(request: Request, error: HTTPException) -> Response:
    """Returns the response to a request for an unknown address or method."""
    message = f"{error.detail}: {request.method} {request.url.path[:200]}"
    return refusal(error.status_code, malformed(message))


def report(request: Request, error: Exception) -> Response:
    """Reports the name of a program error to the page; uvicorn prints the rest."""
    return refusal(500, RequestError("failed", error=type(error).__name__))
