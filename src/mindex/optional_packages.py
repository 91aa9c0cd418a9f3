"""The packages that a lean installation lacks: vectors need them. Without them, searches are by keyword."""

from functools import cache
from importlib.util import find_spec

from mindex.errors import ConfigError

_FOR_VECTORS = ("numpy",)
_FOR_LOCAL_MODELS = ("onnxruntime", "tokenizers")
HINT = "install them with `pip install numpy onnxruntime tokenizers`"


@cache
def missing_packages(*, local: bool = False) -> tuple[str, ...]:
    """Return the packages that are missing for vectors, and with `local` for models on this machine."""
    wanted = (*_FOR_VECTORS, *(_FOR_LOCAL_MODELS if local else ()))
    return tuple(name for name in wanted if find_spec(name) is None)


def lean_reason(provider: str) -> str:
    """Why this installation cannot embed with a provider; '' if it can."""
    missing = missing_packages(local=provider == "local") if provider != "none" else ()
    if not missing:
        return ""
    names = f"{', '.join(missing[:-1])} and {missing[-1]}" if len(missing) > 1 else missing[0]
    return f"searches are by keyword: this installation lacks {names}; {HINT}"


def lacks_package(error: ModuleNotFoundError) -> ConfigError | None:
    """Return the error of a command that cannot do without one of these packages; None for any other module."""
    if error.name not in (*_FOR_VECTORS, *_FOR_LOCAL_MODELS, "huggingface_hub"):
        return None
    package = error.name.replace("_", "-")
    return ConfigError(f"this needs the package {package}, which is not installed", f"run: pip install {package}")
