"""Who comes in: tokens, cookies, accounts that see traces only, and other web sites."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from memorizz.errors import ConfigurationError
from memorizz.portal.accounts import Accounts, Sessions
from memorizz.portal.application import ADDRESSES
from tests.memorizz.cli.conftest import Run, environment, run  # noqa: F401
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.support import EVOLUTION, EXPORT, FORM, IMPORT, Page, Portal, address_of, sentence
from tests.support.rest import Answer

TOKEN, SECRET = "local-token-0123456789", "a secret that signs cookies"
ACCOUNTS = {
    "root": {"token": "root-token-0123456789", "role": "admin"},
    "Eve <b>&": {"token": "viewer-token-0123456789", "role": "viewer"},
    "analyst": {"token": "analyst-token-0123456789", "role": "analyst"},
    "operator": {"token": "operator-token-0123456789", "role": "operator"},
    "ana": {"token": "ana-token-0123456789", "role": "admin", "user_id": "ana"},
    "reef": {"token": "reef-token-0123456789", "role": "admin", "application_id": "reef"},
    "nobody": {"token": "nobody-token-0123456789", "role": "viewer", "user_id": "ana", "application_id": "reef"},
}
RESTRICTED = [name for name in ACCOUNTS if name != "root"]
VALUES = {"slug": "knowledge-base", "agent": "keel", "id": "1"}
LEFT = {"/login", "/logout", EVOLUTION}


@pytest.fixture(scope="module")
def guarded(start_shared: Start, place: Path) -> Portal:
    """A portal with tokens over a memory with a history."""
    return start_shared(
        *on(stores.changed(place / "history.sqlite3", 20)),
        *("--memory-db", stores.typed(place / "typed.db")),
        MEMORIZZ_UI_AUTH_TOKEN=TOKEN,
        MEMORIZZ_UI_AUTH_ACCOUNTS=json.dumps(ACCOUNTS),
        MEMORIZZ_UI_SESSION_SECRET=SECRET,
        MEMORIZZ_UI_SESSION_SECONDS="600",
    )


def bearer(name: str | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN if name is None else ACCOUNTS[name]['token']}"}


def sessions(token: str = TOKEN, secret: str = SECRET) -> Sessions:
    return Sessions(Accounts.parse(token, ""), secret.encode(), 600)


def cookie(value: str) -> dict[str, str]:
    return {"Cookie": f"{Sessions.COOKIE}={value}"}


def issued(answer: Answer) -> str:
    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert name == Sessions.COOKIE
    return rest.partition(";")[0]


def test_without_tokens_whoever_is_on_this_machine_is_the_administrator(reference: Portal) -> None:
    page = reference.page("/")
    assert "Sign out" not in page.text
    assert reference.ask("GET", "/login").headers["location"] == "/"
    assert reference.done("/logout", {}) == "/login"


def test_without_a_token_pages_lead_to_the_login_and_programs_get_401(guarded: Portal) -> None:
    for address in ADDRESSES:
        if address.path == "/login":
            continue
        path = address_of(address.path, **VALUES)
        for method in ("GET", "HEAD", "POST", "PUT"):
            answer = guarded.ask(method, path)
            if path.startswith("/api/"):
                assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            else:
                target = f"/login?next={path}" if method in ("GET", "HEAD") else "/login"
                assert (answer.status, answer.headers["location"]) == (303, target), method
    assert guarded.refused("/api/nothing", 401) == "a valid token is needed"


def test_a_token_in_the_header_opens_every_page(guarded: Portal) -> None:
    for headers in (bearer(), bearer("root"), {"Authorization": f"bearer  {TOKEN} "}):
        for path in ("/", "/agents", "/memory", EVOLUTION, "/memories/1", "/connect", EXPORT):
            assert guarded.ask("GET", path, None, headers).status == 200, path
    assert "Sign out root" in guarded.page("/", headers=bearer("root")).text


@pytest.mark.parametrize(
    "value",
    [
        *(
            "Bearer wrong-token-0123456789",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            "Bearer ",
            "Bearer",
            "",
            "Basic x",
        ),
        *(
            f"Basic {TOKEN}",
            f"Token {TOKEN}",
            TOKEN,
            f"Bearer {TOKEN} {TOKEN}",
            "Bearer \xff\xfe",
            "Bearer " + "x" * 9000,
        ),
    ],
)
def test_a_wrong_token_in_the_header_is_401_even_beside_a_good_cookie(guarded: Portal, value: str) -> None:
    for path in ("/", EXPORT):
        headers = {"Authorization": value}
        answer = guarded.ask("GET", path, None, headers)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert sentence(path, answer) == "a valid token is needed"
        assert TOKEN not in answer.body.decode()
    if value.lower().startswith("bearer "):
        good = cookie(sessions().issue(TOKEN, time.time()) or "")
        assert guarded.ask("GET", "/", None, {**headers, **good}).status == 401


def test_the_login_form_gives_a_cookie_that_opens_pages(guarded: Portal) -> None:
    page = guarded.page("/login?next=/memory%3Fx%3D1")
    form = page.forms[0]
    assert (form.method, form.action) == ("POST", "/login")
    assert form.fields == [("next", "/memory?x=1"), ("access_token", "")]
    answer = guarded.submit("/login", {"access_token": f" {TOKEN} ", "next": "/memory?x=1"})
    assert (answer.status, answer.headers["location"]) == (303, "/memory?x=1")
    said = answer.headers["set-cookie"].lower().split("; ")[1:]
    assert set(said) == {"httponly", "samesite=strict", "max-age=600", "path=/"}
    assert TOKEN not in answer.headers["set-cookie"]
    opened = guarded.page("/memory", headers=cookie(issued(answer)))
    assert "Sign out local" in opened.text
    assert guarded.ask("GET", EXPORT, None, cookie(issued(answer))).status == 200


def test_a_wrong_token_in_the_form_is_said_there(guarded: Portal) -> None:
    for given in ("wrong-token-0123456789", "", TOKEN.upper(), "é" * 20, "\0", "x" * 100_000):
        answer = guarded.submit("/login", {"access_token": given, "next": "/memory"})
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        page = Page("/login", answer)
        assert "This token opens nothing here" in page.problem
        assert ("next", "/memory") in page.forms[0].fields
        assert not given or given not in page.source
    assert guarded.submit("/login", {}).status == 401
    assert guarded.submit("/login", [("access_token", TOKEN), ("access_token", "x")]).status == 401


def test_signing_out_takes_the_cookie_away(guarded: Portal) -> None:
    held = issued(guarded.submit("/login", {"access_token": TOKEN}))
    answer = guarded.submit("/logout", {}, cookie(held))
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert issued(answer) == '""'
    assert "max-age=0" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("arguments", "variables", "is_secure"),
    [
        ((), {}, False),
        ((), {"MEMORIZZ_UI_COOKIE_SECURE": "true"}, True),
        (("--public-url", "https://memory.example"), {}, True),
        (("--public-url", "http://memory.example"), {}, False),
    ],
)
def test_the_cookie_is_for_tls_only_where_that_is_spoken(
    start: Start, file: Path, arguments: tuple[str, ...], variables: dict[str, str], is_secure: bool
) -> None:
    portal = start(*on(file), *arguments, MEMORIZZ_UI_AUTH_TOKEN=TOKEN, **variables)
    said = portal.submit("/login", {"access_token": TOKEN}).headers["set-cookie"].lower()
    assert ("secure" in said) == is_secure
    assert "max-age=28800" in said


def altered() -> dict[str, str]:
    """Cookies that open nothing."""
    now = time.time()
    good = sessions().issue(TOKEN, now) or ""
    expires, print_, seal = good.split(".")
    padded = base64.urlsafe_b64encode(base64.urlsafe_b64decode(seal + "=") + b"x").decode()
    return {
        "expired": sessions().issue(TOKEN, now - 601) or "",
        "of long ago": sessions().issue(TOKEN, 0) or "",
        "of another secret": sessions(secret="another").issue(TOKEN, now) or "",
        "of another token": sessions("another-token-0123456789").issue("another-token-0123456789", now) or "",
        "prolonged": f"{int(expires) + 1}.{print_}.{seal}",
        "of another account": f"{expires}.{'00' * 16}.{seal}",
        "without seal": f"{expires}.{print_}.",
        "cut": good[:-1],
        "longer": f"{good}x",
        "padded": f"{expires}.{print_}.{padded}",
        "in capitals": good.upper(),
        "empty": "",
        "points": "..",
        "words": "true",
        "bytes": "\xff.\xfe.\xfd",
        "long": "1." * 3000,
        "quoted": f'"{good}',
        "the token": TOKEN,
    }


@pytest.mark.parametrize("name", altered())
def test_a_cookie_that_was_forged_altered_or_expired_opens_nothing(guarded: Portal, name: str) -> None:
    answer = guarded.ask("GET", "/", None, cookie(altered()[name]))
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=/")
    assert guarded.ask("GET", EXPORT, None, cookie(altered()[name])).status == 401


def test_a_cookie_outlives_a_restart_only_where_its_secret_does(start: Start, file: Path) -> None:
    held = sessions().issue(TOKEN, time.time()) or ""
    again = start(*on(file), MEMORIZZ_UI_AUTH_TOKEN=TOKEN, MEMORIZZ_UI_SESSION_SECRET=SECRET)
    again.page("/", headers=cookie(held))
    other = start(*on(file), MEMORIZZ_UI_AUTH_TOKEN=TOKEN)
    assert other.ask("GET", "/", None, cookie(held)).status == 303
    changed = start(*on(file), MEMORIZZ_UI_AUTH_TOKEN=f"{TOKEN}-2", MEMORIZZ_UI_SESSION_SECRET=SECRET)
    assert changed.ask("GET", "/", None, cookie(held)).status == 303


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        ("/memory?q=a+b&page=2", "/memory?q=a+b&page=2"),
        ("/agents/a%2Fb%253F/playground", "/agents/a%2Fb%253F/playground"),
        ("/agents/é/playground", "/agents/%C3%A9/playground"),
        *((wanted, "/") for wanted in ("", " ", "memory", "?x", "#x", "https://evil.example", "//evil.example/x")),
        *(
            (wanted, "/")
            for wanted in ("/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "/\t/evil.example")
        ),
        *(
            (wanted, "/")
            for wanted in ("/\n/evil.example", "/\r\nSet-Cookie: a=b", "///evil.example", "/\0", "/\x85/x")
        ),
        *((wanted, "/") for wanted in (" //evil.example", "%2F%2Fevil.example", "http:/evil.example", "/\u2028x")),
    ],
)
def test_the_login_leads_back_to_a_page_of_the_portal_and_nowhere_else(
    guarded: Portal, wanted: str, target: str
) -> None:
    assert guarded.done("/login", {"access_token": TOKEN, "next": wanted}) == target
    shown = dict(guarded.page(f"/login?{urlencode({'next': wanted})}").forms[0].fields)["next"]
    assert quote(shown, safe="/?=&+%") == target


@pytest.mark.parametrize(
    "wanted",
    ["/memory?q=a%20b&page=2", "/agents/a%3Fb%252Fc%2F%C3%A9/playground?tab=recall", "/memory/personas?q=%22%26%3D%23"],
)
def test_who_signs_in_on_the_way_arrives_where_it_wanted_to_go(guarded: Portal, wanted: str) -> None:
    login = guarded.ask("GET", wanted).headers["location"]
    fields = dict(guarded.page(login).forms[0].fields)
    assert guarded.done("/login", {**fields, "access_token": TOKEN}) == wanted


@pytest.mark.parametrize("name", RESTRICTED)
def test_a_restricted_account_sees_traces_only(guarded: Portal, name: str) -> None:
    for address in ADDRESSES:
        if address.path in LEFT:
            continue
        path = address_of(address.path, **VALUES)
        for method in ("GET", "POST", "PUT"):
            answer = guarded.ask(method, path, b"", {**bearer(name), **FORM})
            assert f"the account {name} sees traces only" in sentence(path, answer, 403), (method, path)
    for path in ("/nowhere", "/tracesx", "/%74races%2F", "/api/nothing", "//traces/x"):
        assert guarded.ask("GET", path, None, bearer(name)).status in (403, 404), path
    for path in ("/traces/nothing", "/traces/../memory", "/traces/%2e%2e/", "/traces/..%2fmemory"):
        assert guarded.refused(path, 404, bearer(name))
    page = guarded.page(EVOLUTION, headers=bearer(name))
    assert {link for link in page.links if not link.startswith("/static/")} == {EVOLUTION}
    assert f"Sign out {name}" in page.text
    assert guarded.done("/login", {"access_token": str(ACCOUNTS[name]["token"])}) == EVOLUTION


@pytest.mark.parametrize(
    ("name", "agents"),
    [("Eve <b>&", {"keel", "plover"}), ("ana", {"keel"}), ("reef", {"plover"}), ("nobody", set())],
)
def test_a_restricted_account_sees_changes_of_its_own_and_no_value(
    guarded: Portal, name: str, agents: set[str]
) -> None:
    page = guarded.page(EVOLUTION, headers=bearer(name))
    assert {agent for agent in ("keel", "plover") if f"ns-{agent}" in page.text} == agents
    everything = guarded.page(EVOLUTION, headers=bearer())
    assert "Secret title" in everything.text
    assert "Secret name" in everything.text
    assert "Secret" not in page.source
    assert "agent_id" not in page.options
    further = guarded.page(f"{EVOLUTION}?user_id=ben&application_id=harbor&agent_id=plover", headers=bearer("ana"))
    assert "No change fits these filters." in further.text


def test_a_restricted_account_is_told_that_no_memory_is_connected(start: Start) -> None:
    portal = start("--no-connect", MEMORIZZ_UI_AUTH_ACCOUNTS=json.dumps(ACCOUNTS))
    assert "no memory is connected" in portal.refused(EVOLUTION, 400, bearer("analyst"))
    assert portal.ask("GET", EVOLUTION, None, bearer("root")).headers["location"] == "/connect"


BAD_ACCOUNTS = [
    ("{", "is not valid JSON"),
    ("[" * 100_000, "is not valid JSON"),
    ("[]", "must be a JSON object"),
    ('"0123456789abcdef"', "must be a JSON object"),
    ('{"a": "0123456789abcdef"}', "must be an object with token and role"),
    ('{"a": {"token": "0123456789abcdef"}}', "the role must be one of viewer, analyst, operator, admin"),
    ('{"a": {"token": "0123456789abcdef", "role": "Admin"}}', "the role must be one of"),
    ('{"a": {"token": "0123456789abcdef", "role": ["admin"]}}', "the role must be one of"),
    ('{"a": {"role": "admin"}}', "at least 16 characters"),
    ('{"a": {"token": "0123456789abcde", "role": "admin"}}', "at least 16 characters"),
    ('{"a": {"token": 123456789012345678, "role": "admin"}}', "at least 16 characters"),
    ('{"a": {"token": "0123456789 abcdef", "role": "admin"}}', "no space"),
    ('{"a": {"token": "0123456789abcdef\\n", "role": "admin"}}', "no space"),
    ('{"a": {"token": "0123456789abcdef", "role": "admin", "user": "x"}}', "unknown field 'user'"),
    ('{"a": {"token": "0123456789abcdef", "role": "admin", "user_id": ""}}', "user_id must be a text"),
    ('{"a": {"token": "0123456789abcdef", "role": "admin", "user_id": 5}}', "user_id must be a text"),
    ('{"a": {"token": "0123456789abcdef", "role": "admin", "application_id": []}}', "application_id must be a text"),
    (
        '{"a": {"token": "0123456789abcdef", "role": "admin"}, "b": {"token": "0123456789abcdef", "role": "viewer"}}',
        "another account's",
    ),
]


def refused_at_start(run: Run, *arguments: str, **variables: str) -> str:  # noqa: F811
    done: subprocess.CompletedProcess[str] = run("ui", "--port", "0", *arguments, **variables)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "0123456789" not in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(("accounts", "message"), BAD_ACCOUNTS, ids=[str(n) for n in range(len(BAD_ACCOUNTS))])
def test_accounts_that_cannot_be_are_refused_in_one_sentence_without_a_token(accounts: str, message: str) -> None:
    # Starting a process for each would take too long; one is below.
    with pytest.raises(ConfigurationError, match="MEMORIZZ_UI_AUTH_ACCOUNTS") as caught:
        Accounts.parse("", accounts)
    assert message in str(caught.value)
    assert "0123456789" not in str(caught.value)


REFUSED_AT_START = [
    ((), {"MEMORIZZ_UI_AUTH_ACCOUNTS": '{"a": {"token": "0123456789 abcdef", "role": "admin"}}'}, "no space"),
    ((), {"MEMORIZZ_UI_AUTH_TOKEN": "0123456789"}, "MEMORIZZ_UI_AUTH_TOKEN: a token must have at least 16"),
    (("--host", "0.0.0.0"), {}, "a portal that others can reach needs tokens"),
    (("--public-url", "https://memory.example"), {}, "a portal that others can reach needs tokens"),
    (("--host", "memory.example"), {}, "--host must be an IP address or localhost"),
    (
        ("--public-url", "memory.example"),
        {"MEMORIZZ_UI_AUTH_TOKEN": TOKEN},
        "--public-url must be the URL of a whole site",
    ),
    ((), {"MEMORIZZ_UI_SESSION_SECONDS": "299"}, "a whole number from 300 to 86400"),
    ((), {"MEMORIZZ_UI_READ_ONLY": "perhaps"}, "MEMORIZZ_UI_READ_ONLY must be true or false"),
]


@pytest.mark.parametrize(("arguments", "variables", "message"), REFUSED_AT_START)
def test_a_setting_that_cannot_be_is_refused_at_the_start(
    run: Run,  # noqa: F811
    arguments: tuple[str, ...],
    variables: dict[str, str],
    message: str,
) -> None:
    assert message in refused_at_start(run, *arguments, **variables)


HOSTS = {
    "localhost": True,
    "LOCALHOST.": True,
    "127.0.0.1": True,
    "127.8.8.8:80": True,
    "[::1]:8765": True,
    "evil.example": False,
    "localhost.evil.example": False,
    "192.168.1.2": False,
    "": False,
    "[": False,
}


@pytest.mark.parametrize("host", HOSTS)
def test_without_tokens_only_names_of_this_machine_are_answered(reference: Portal, host: str) -> None:
    for path in ("/", EXPORT, "/static/portal.css", "/nowhere"):
        answer = reference.ask("GET", path, None, {"Host": host})
        assert (answer.status == 403) != HOSTS[host], (path, answer)
        if answer.status == 403:
            assert "must name this machine" in sentence(path, answer)


def test_with_tokens_any_host_is_answered_and_two_never(guarded: Portal) -> None:
    for host in ("memory.example", "localhost", "evil.example:99999", "["):
        assert guarded.ask("GET", "/", None, {**bearer(), "Host": host}).status == 200
    connection = guarded.connect()
    connection.putrequest("GET", "/", skip_host=True)
    for host in ("localhost", "localhost"):
        connection.putheader("Host", host)
    connection.endheaders()
    with connection.getresponse() as response:
        assert response.status == 403
    connection.close()


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://", "x", "http://"])
def test_requests_from_other_web_sites_are_refused(guarded: Portal, reference: Portal, origin: str) -> None:
    for path, body in (("/connect", b"backend=sqlite"), (IMPORT, b"{}"), ("/login", f"access_token={TOKEN}".encode())):
        for portal, headers in ((guarded, bearer()), (reference, {})):
            answer = portal.ask("POST", path, body, {**headers, **FORM, "Origin": origin})
            assert "other web sites" in sentence(path, answer, 403)
            assert "set-cookie" not in answer.headers
    assert guarded.ask("GET", EXPORT, None, {**bearer(), "Origin": origin}).status == 403


def test_the_portals_own_pages_may_post_whatever_the_scheme(reference: Portal) -> None:
    for origin in (reference.url, reference.url.replace("http:", "https:"), reference.url.upper()):
        assert reference.restore(b"[]", headers={"Origin": origin}).status == 400


@pytest.mark.parametrize("public", ["https://memory.example", "https://memory.example:8443", "http://memory.example"])
def test_behind_a_proxy_its_own_pages_may_post_whichever_host_it_passes_on(
    start: Start, file: Path, public: str
) -> None:
    portal = start(*on(file), "--public-url", f"{public}/", MEMORIZZ_UI_AUTH_TOKEN=TOKEN)
    site = public.partition("://")[2]
    for host in (site, f"127.0.0.1:{portal.port}", "backend.internal"):
        headers = {"Host": host, "Origin": public}
        assert portal.restore(b"[]", headers={**headers, **bearer()}).status == 400, host
        assert portal.submit("/login", {"access_token": TOKEN}, headers).status == 303, host
        evil = {"Host": host, "Origin": "https://evil.example"}
        assert portal.restore(b"[]", headers={**evil, **bearer()}).status == 403, host
        answer = portal.ask("GET", "/memory", None, {"Host": host})
        assert answer.headers["location"] == "/login?next=/memory"
