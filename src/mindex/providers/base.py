"""What every kind of provider is told."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Which model is wanted and how it is reached; each provider reads what concerns it."""

    provider: str
    model: str = ""
    url: str = ""
    api_key: str = field(default="", repr=False)
    timeout: float = 30.0
