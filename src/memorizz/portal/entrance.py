"""Coming in and choosing the memory: the pages Login and Connection."""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from memorizz.backends import BACKENDS
from memorizz.config import Settings
from memorizz.errors import MemorizzError
from memorizz.portal.accounts import Sessions
from memorizz.portal.connection import Target
from memorizz.portal.web import Call


def show_login(call: Call) -> Response:
    """The form for a token."""
    if not call.portal.settings.accounts:
        return RedirectResponse("/", 303)
    return call.render("login.html", next=_local(call.query("next")), wrong=False)


def log_in(call: Call) -> Response:
    """A cookie for a valid token."""
    given = call.form()
    token = given.get("access_token", "")
    cookie = call.portal.sessions.issue(token, time.time())
    target = _local(given.get("next"))
    if cookie is None:
        return call.render("login.html", 401, next=target, wrong=True)
    found = call.portal.settings.accounts.match(token)
    if target == "/" and found is not None and found[1].restricted:
        target = "/traces/memory-evolution"
    answer = RedirectResponse(target, 303)
    answer.set_cookie(
        Sessions.COOKIE,
        cookie,
        max_age=call.portal.sessions.seconds,
        secure=call.portal.settings.cookie_secure,
        httponly=True,
        samesite="strict",
    )
    return answer


def log_out(_call: Call) -> Response:
    """The login page, the cookie gone."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(Sessions.COOKIE, httponly=True, samesite="strict")
    return answer


def show_connection(call: Call) -> Response:
    """The memory that is connected, and a form for another one."""
    return call.render("connect.html", kinds=BACKENDS, wrong=None, given={}, done=call.query("done") is not None)


def connect(call: Call) -> Response:
    """Connect another memory."""
    given = call.form()
    problem = None
    try:
        problem = _connect(call, given)
    except OSError as error:
        problem = f"{given.get('path')} cannot be used: {error.strerror or error}"
    except MemorizzError as error:
        problem = str(error)
    if problem is not None:
        return call.render("connect.html", 400, kinds=BACKENDS, wrong=problem, given=given, done=False)
    return RedirectResponse("/connect?done=1", 303)


def _connect(call: Call, given: Mapping[str, str]) -> str | None:
    """Connect what the form says, or return what is wrong with it."""
    backend = given.get("backend", "")
    if backend not in BACKENDS:
        return f"choose one of {', '.join(BACKENDS)}"
    if BACKENDS[backend].in_files and not given.get("path"):
        return "say where the memory is"
    chosen = Settings.resolve(backend=backend, path=given.get("path"))
    if chosen.path is not None and given.get("create") != "true" and not chosen.is_there:
        return f"there is no {backend} memory at {chosen.path}; tick the box to make a new memory there"
    read_only = call.portal.settings.read_only or given.get("read_only") == "true"
    call.portal.connection.connect(Target(backend, chosen.options, chosen.place, read_only))
    return None


def _local(target: str | None) -> str:
    """Where to go after the login: a page of this portal and nowhere else."""
    if target is None or not target.startswith("/") or target[1:2] in ("/", "\\") or not target.isprintable():
        return "/"
    return target
