"""The check of web forms: another site can make a browser send a form (CSRF), but cannot know the session's secret."""

from __future__ import annotations

from collections.abc import Mapping

from mindex.datatypes.access_tokens import Principal
from mindex.errors import AccessDeniedError, read_only_token
from mindex.http_access.sessions import Session


class OutdatedFormError(AccessDeniedError):
    """A form without the token of the current session."""


def check_form(form: Mapping[str, str], session: Session | None, principal: Principal, *, writes: bool) -> None:
    """Raise AccessDeniedError unless the form's hidden field is that of the session, and the principal may write.

    A form that does not write, such as the logout, is accepted of any principal.
    """
    if session is None or not session.accepts(form.get("csrf", "")):
        raise OutdatedFormError(
            "this form is out of date, so nothing was changed", "load its page again and send it once more"
        )
    if writes and not principal.may_write:
        raise read_only_token()
