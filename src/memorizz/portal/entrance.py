"""Coming in and choosing the memory: the pages Login and Connection."""

from __future__ import annotations

import time
from pathlib import Path

from starlette.responses import RedirectResponse, Response

from memorizz.errors import MemorizzError
from memorizz.portal.accounts import Sessions
from memorizz.portal.connection import Target
from memorizz.portal.web import Call
from memorizz.providers.registry import KINDS


def show_login(call: Call) -> Response:
    """The form for a token."""
    if not call.portal.settings.accounts:
        return RedirectResponse("/", 303)
    return call.render("login.html", next=_local(call.query("next")), wrong=False)


def log_in(call: Call) -> Response:
    """A cookie for a valid token."""
    given = call.form()
    cookie = call.portal.sessions.issue(given.get("access_token", ""), time.time())
    target = _local(given.get("next"))
    if cookie is None:
        return call.render("login.html", 401, next=target, wrong=True)
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
    return call.render("connect.html", kinds=KINDS, wrong=None, given={}, done=call.query("done") is not None)


def connect(call: Call) -> Response:
    """Connect another memory."""
    given = call.form()
    problem = None
    path = Path(given.get("path", ""))
    if given.get("backend") not in KINDS:
        problem = f"choose one of {', '.join(KINDS)}"
    elif not given.get("path") or "\0" in given["path"]:
        problem = "say where the memory is"
    else:
        try:
            path = path.expanduser().absolute()
            if not path.exists() and given.get("create") != "true":
                problem = f"there is nothing at {path}; tick the box to make a new memory there"
            else:
                read_only = given.get("read_only") == "true"
                call.portal.connection.connect(Target(given["backend"], path, read_only))
        except (MemorizzError, OSError, RuntimeError) as error:
            problem = str(error)
    if problem is not None:
        return call.render("connect.html", 400, kinds=KINDS, wrong=problem, given=given, done=False)
    return RedirectResponse("/connect?done=1", 303)


def _local(target: str | None) -> str:
    """Where to go after the login: a page of this portal and nowhere else."""
    if target is None or not target.startswith("/") or target[1:2] in ("/", "\\") or not target.isprintable():
        return "/"
    return target
