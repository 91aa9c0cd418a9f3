"""Sessions of browsers and one-time links: how long they count, and for what."""

from __future__ import annotations

from starlette.requests import Request

from mindex.http_access.sessions import LINK_SECONDS, SESSION_SECONDS, Session, Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(sessions: Sessions, session: Session | None, path: str = "/", method: str = "GET") -> Request:
    headers = [(b"cookie", f"{sessions.cookie}={session.id}".encode())] if session else []
    return Request({"type": "http", "path": path, "method": method, "headers": headers, "query_string": b""})


def test_a_session_counts_until_it_is_left_alone_for_too_long() -> None:
    clock = Clock()
    sessions = Sessions(8080, clock=clock)
    session = sessions.begin("mdx_x")
    clock.now += SESSION_SECONDS - 1
    assert sessions.authorization(request(sessions, session)) == "Bearer mdx_x"
    clock.now += SESSION_SECONDS - 1  # the last request restarted the time
    assert sessions.find(request(sessions, session)) is session
    clock.now += SESSION_SECONDS
    assert sessions.find(request(sessions, session)) is None


def test_a_one_time_link_counts_once_and_not_for_long() -> None:
    clock = Clock()
    sessions = Sessions(8080, clock=clock)
    code = sessions.make_code("mdx_x")
    assert sessions.redeem("another") is None
    assert sessions.redeem(code) == "mdx_x"
    assert sessions.redeem(code) is None
    late = sessions.make_code("mdx_x")
    clock.now += LINK_SECONDS
    assert sessions.redeem(late) is None


def test_a_cookie_does_not_count_where_only_a_header_does() -> None:
    sessions = Sessions(8080, header_only=("/mcp",), read_only="/api/v1/")
    session = sessions.begin("mdx_x")
    assert sessions.authorization(request(sessions, session, "/mcp", "POST")) == ""
    assert sessions.authorization(request(sessions, session, "/api/v1/status")) == "Bearer mdx_x"
    assert sessions.authorization(request(sessions, session, "/api/v1/add", "POST")) == ""
    assert sessions.authorization(request(sessions, session, "/add", "POST")) == "Bearer mdx_x"


def test_two_servers_of_one_machine_have_different_cookies() -> None:
    assert Sessions(8080).cookie != Sessions(8081).cookie


def test_a_form_counts_for_its_own_session_only() -> None:
    sessions = Sessions(8080)
    one, other = sessions.begin("mdx_x"), sessions.begin("mdx_x")
    assert one.accepts(one.csrf)
    assert not one.accepts(other.csrf)
    assert not one.accepts("")
