"""The redactor: removes invisible characters, private sections and secrets from a text before it is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mindex.config import SecretsMode, Settings
from mindex.errors import SecretError
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.redaction.user_rules import UserRule

# Part of every indexed file's fingerprint: raise it when the same text would be redacted differently.
REDACTION_VERSION = 5

_MAX_PASSES = 8


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """A text without its secrets; `redacted` names each kind of secret once, in the order of the text."""

    text: str
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A secret or a private section in a text; `preview` is at most its first four characters."""

    kind: str
    line: int
    preview: str


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts texts in one mode: `redact` replaces secrets, `strict` raises SecretError for one, `off` leaves them.

    Private sections and invisible characters are removed in every mode.
    """

    mode: SecretsMode = "redact"
    rules: str = ""  # the file of the user's own rules; '' without one

    @classmethod
    def of(cls, settings: Settings) -> Redactor:
        """Return the redactor of the settings. Raises ConfigError for rules of the user that cannot be used."""
        redactor = cls(settings.secrets_mode, settings.text("secrets.rules"))
        redactor.check_rules()
        return redactor

    def check_rules(self) -> None:
        """Raise ConfigError for rules of the user that cannot be used."""
        self._user_rules()

    @property
    def version(self) -> str:
        """Names everything that decides how a text is redacted: part of the fingerprint of an indexed file."""
        version = f"b{REDACTION_VERSION}{self.mode}"
        if not self.rules:
            return version
        from mindex.redaction.user_rules import load_user_rules  # only with such a file

        return f"{version}-{load_user_rules(self.rules).version}"

    def for_reading(self) -> Redactor:
        """Return a redactor that never raises: a secret in a text that is only shown is replaced."""
        return replace(self, mode="redact") if self.mode == "strict" else self

    def redact(self, text: str, *, keep_lines: bool = False) -> RedactionResult:
        """Return `text` as it may be stored, and the kinds of secrets that were replaced.

        With `keep_lines` the newlines of removed text stay, so that line numbers hold. Raises SecretError in strict
        mode when the text has a secret.
        """
        if not text:  # most texts are properties that were not given
            return RedactionResult("")
        if not text.isascii():
            from mindex.redaction.invisible_characters import remove_invisible  # compiles patterns: 30 ms

            text = remove_invisible(text)
        if "<" in text:
            from mindex.redaction.private_sections import (  # compiles patterns: 30 ms
                cut_sections,
                find_private_sections,
            )

            text = cut_sections(text, find_private_sections(text), keep_lines=keep_lines)
        if self.mode == "off":
            return RedactionResult(text)
        return self._without_secrets(text, keep_lines)

    def _without_secrets(self, text: str, keep_lines: bool) -> RedactionResult:
        from mindex.redaction.secret_finder import find_secret_spans, replace_secrets  # compiles patterns: 30 ms

        kinds: dict[str, None] = {}
        user_rules = self._user_rules()
        # A replacement changes the neighbourhood (a card no longer touches a letter): search until nothing is found.
        # One more pass is the rule; the bound keeps a text made of nothing but such chains from costing its square.
        for _ in range(_MAX_PASSES):
            spans = find_secret_spans(text, user_rules)
            if not spans:
                break
            kinds.update(dict.fromkeys(span.kind for span in spans))
            self._refuse(kinds)
            text = replace_secrets(text, spans, keep_lines=keep_lines)
        return RedactionResult(text, tuple(kinds))

    def _user_rules(self) -> tuple[UserRule, ...]:
        if not self.rules:
            return ()
        from mindex.redaction.user_rules import load_user_rules  # only with such a file

        return load_user_rules(self.rules).rules

    def _refuse(self, kinds: Iterable[str]) -> None:
        if self.mode == "strict":
            raise SecretError(
                f"the text contains a secret ({', '.join(kinds)}), so nothing was stored",
                "take it out, or put it between <private> and </private>; secrets.mode = redact stores the rest",
            )

    def redact_pair(self, first: str, second: str) -> tuple[RedactionResult, RedactionResult]:
        """Redact two texts of which the second follows the first, as the sides of a turn do.

        A secret that begins in the first and ends in the second, or is named in the first and is in the second, is
        removed from both. Raises SecretError in strict mode.
        """
        results = self.redact(first), self.redact(second)
        if self.mode == "off" or not first or not second:
            return results
        from mindex.redaction.split_secrets import cut_split_secret  # compiles patterns: 30 ms

        without_sections = Redactor("off").redact_text
        user_rules = self._user_rules()
        first, second, kinds = cut_split_secret(without_sections(first), without_sections(second), user_rules)
        if not kinds:
            return results
        self._refuse(kinds)
        results = self.redact(first), self.redact(second)
        return RedactionResult(results[0].text, (*results[0].redacted, *kinds)), results[1]

    def kinds_in(self, name: str) -> tuple[str, ...]:
        """The kinds of secrets in a name, which is used as it is or not at all; none in mode `off`."""
        return self.for_reading().redact(name).redacted

    def redact_text(self, text: str, *, keep_lines: bool = False) -> str:
        """Return only the text of `redact`."""
        return self.redact(text, keep_lines=keep_lines).text

    def find(self, text: str) -> tuple[SecretMatch, ...]:
        """Return what would be removed from `text` in mode `redact`, in order, for a scan of what is stored already.

        Secrets inside a private section are listed beside the section.
        """
        from mindex.redaction.invisible_characters import remove_invisible  # compiles patterns: 30 ms
        from mindex.redaction.private_sections import find_private_sections  # compiles patterns: 30 ms
        from mindex.redaction.secret_finder import find_secret_spans  # compiles patterns: 30 ms

        text = remove_invisible(text)
        sections = [(start, end, "private") for start, end in find_private_sections(text)]
        spans = sorted([*sections, *find_secret_spans(text, self._user_rules())], key=lambda span: (span[0], -span[1]))
        found, line, counted = [], 1, 0
        for start, end, kind in spans:
            line += text.count("\n", counted, start)
            counted = start
            shown = min(4, (end - start) // 4)  # four of eight would be half a password
            found.append(SecretMatch(kind, line, text[start : start + shown] + "…"))
        return tuple(found)
