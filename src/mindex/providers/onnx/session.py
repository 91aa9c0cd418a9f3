"""Opening an ONNX model fast: from a ready, memory-mapped copy that is saved once per machine.

ONNX Runtime spends a third of a second and 100 MB on optimising the graph of a small model. It can save the result
in its own format and map that file next time, which takes 10 ms. The copy is only a cache: if it or its folder is
unusable, the model is opened from the original file instead.

A model may have a second graph that computes in int8 (`training/graphs.py`). Both are then compared before the copy is
made of the better one. Its name tells which that is, and contains the processor that it was chosen for.
"""

from __future__ import annotations

import atexit
import contextlib
import glob
import hashlib
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mindex.private_files import make_private_folder
from mindex.providers.model_files import checksum
from mindex.providers.onnx.seal import is_sealed, seal
from mindex.temporary_files import replaced_file

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession, SessionOptions

# A gain below this would not be worth vectors that differ in the third digit.
_MIN_GAIN = 1.3
# Measured: .999. A canary is taken for that of another model below .95.
_MIN_COSINE = 0.99
_RUNS = 5  # beside busy processes, the fastest of three differed by a fifth for one and the same session
_TEXTS, _TOKENS = 2, 128
_STALE_AFTER = 30 * 24 * 60 * 60
_CPUINFO_BYTES = 8192  # the first processor's lines, of hundreds
_FATAL = 4  # severity of what ONNX Runtime may log: failures are handled here or raised


def import_runtime() -> ModuleType:
    """Import ONNX Runtime without its reports and logs. The only place of mindex that imports it.

    In recent versions (1.31 is one) the mere import leaves a device id in the home folder and sets up reports to its
    maker. Only the environment can forbid that, and only beforehand; the variable has had two names.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = os.environ["ORT_TELEMETRY_DISABLED"] = "1"
    import onnxruntime  # 100 ms, and not before the variables are set

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(_FATAL)
    runtime: ModuleType = onnxruntime
    return runtime


class NotOpened(Exception):
    """Why a model cannot be opened, as the end of a sentence."""


def open_session(
    model: Path, sha256: str, folder: Path, *, packed: bool = False, int8_graph: Path | None = None
) -> InferenceSession:
    """Return a session for `model`, from its ready copy in `folder` where possible. Raises NotOpened.

    The model's bytes are checked against `sha256` whenever they are read, and those of the copy against its seal.
    `packed` weights are faster to multiply with, and are held twice.
    `int8_graph` is a graph that computes the model in int8; it is used if this processor gains by it.
    """
    copy = folder / _copy_name(model, sha256, import_runtime().__version__, int8_graph)
    int8_copy = copy.with_name(f"{copy.stem}-int8{copy.suffix}")
    if int8_graph and is_sealed(int8_copy) and (session := _open_copy(int8_copy, packed=True)):
        return session
    if is_sealed(copy) and (session := _open_copy(copy, packed)):
        return session
    try:
        found = checksum([model, *weights_beside(model)])
    except OSError as error:
        raise NotOpened(f"cannot be read ({error.strerror or error})") from error
    if found != sha256:
        raise NotOpened("is damaged: its checksum is wrong")
    if int8_graph and _gains_by(int8_graph, model):
        model, copy, packed = int8_graph, int8_copy, True
    if _save_copy(model, copy) and (session := _open_copy(copy, packed)):
        return session
    try:
        return _open(model, _options(packed))
    except Exception as error:  # ONNX Runtime's errors share no base class
        raise NotOpened(f"cannot be opened ({error})") from error


def weights_beside(model: Path) -> list[Path]:
    """Return further files of weights: `model.onnx_data`, `model.onnx.data`; models of over 2 GB need them."""
    return sorted(file for file in model.parent.glob(f"{glob.escape(model.name)}[._]data*") if file.is_file())


def _copy_name(model: Path, sha256: str, version: str, int8_graph: Path | None) -> str:
    """Return a name with all that the copy depends on: the model, ONNX Runtime's version, the kind of processor.

    A copy that was chosen by a comparison also depends on this processor and on the other graph.
    """
    size = model.stat().st_size if model.is_file() else 0
    parts = [sha256, str(size), platform.machine(), sys.byteorder]
    if int8_graph is not None:
        parts += [checksum([int8_graph]) if int8_graph.is_file() else "", _processor_features()]
    key = hashlib.sha256("/".join(parts).encode()).hexdigest()[:12]
    folder = model.parent.parent if model.parent.name == "onnx" else model.parent
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', folder.name)[:60]}-{key}-ort-{version}.ort"


def _processor_features() -> str:
    """Return what Linux says the first processor can do: a home folder can be on machines with different ones."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            lines = file.read(_CPUINFO_BYTES).splitlines()
    except OSError:
        return ""
    return next((line.decode(errors="replace") for line in lines if line.startswith((b"flags", b"Features"))), "")


# ── the ready copy ────────────────────────────────────────────────────────────────────────────────────────────


def _save_copy(model: Path, copy: Path) -> bool:
    """Save a ready copy of the model; several processes may do so at once, the last one wins with an equal file."""
    options = _options()
    # The level above this one may choose a layout for this very processor; a home folder can be on several.
    options.graph_optimization_level = import_runtime().GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        make_private_folder(copy.parent)
        with replaced_file(copy) as temporary:
            options.optimized_model_filepath = temporary.name
            _open(model, options)
            seal(Path(temporary.name))
        _remove_old(copy)
    except Exception:  # a full disk, a read-only folder, a runtime that cannot save: it works without a copy
        # Another process may have put its copy there and be using it, which on Windows forbids replacing it.
        return is_sealed(copy)
    return True


def _remove_old(copy: Path) -> None:
    """Remove copies of old versions: each is 90 MB."""
    for file in copy.parent.glob("*.ort"):
        with contextlib.suppress(OSError):
            if file != copy and file.stat().st_mtime < time.time() - _STALE_AFTER:
                file.unlink()


def _gains_by(int8_graph: Path, model: Path) -> bool:
    """Whether this processor gains by the graph in int8.

    False also if anything about it fails: a missing file, an ONNX Runtime without an operator, other weights.
    """
    with contextlib.suppress(Exception):
        return is_better(_open(int8_graph, _options(packed=True)), _open(model, _options()))
    return False


def _open_copy(copy: Path, packed: bool) -> InferenceSession | None:
    for mapped in (True, False):  # not every platform can map the file; reading it is still faster than the original
        options = _options(packed)
        options.graph_optimization_level = import_runtime().GraphOptimizationLevel.ORT_DISABLE_ALL
        if mapped:
            options.add_session_config_entry("session.use_memory_mapped_ort_model", "1")
            options.add_session_config_entry("session.use_ort_model_bytes_directly", "1")
            options.add_session_config_entry("session.use_ort_model_bytes_for_initializers", "1")
        with contextlib.suppress(Exception):
            return _open(copy, options)
    return None


# ── sessions ──────────────────────────────────────────────────────────────────────────────────────────────────


def _options(packed: bool = False) -> SessionOptions:
    options = import_runtime().SessionOptions()
    options.log_severity_level = _FATAL
    # Two threads on one text are slower than two texts on a thread each.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Packed float weights would make a query 5 ms faster, the first one 30 ms slower, and keep a second 40 MB of them.
    # For int8 weights it is 2 ms, at no such price.
    options.add_session_config_entry("session.disable_prepacking", "0" if packed else "1")
    # Weights inside the arena would pin its blocks, which could then not be given back after a batch.
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return options


def _open(model: Path, options: SessionOptions) -> InferenceSession:
    # No list of providers but the processor's own: others answer with slightly different vectors.
    runtime = import_runtime()
    with native_call():
        return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


# ── the faster graph ──────────────────────────────────────────────────────────────────────────────────────────


def is_better(candidate: InferenceSession, exact: InferenceSession) -> bool:
    """Whether the candidate gives the vectors of the exact form in clearly less time. Takes about half a second.

    Flags of processors do not tell what is gained. Where instructions saturate (AVX2 without VNNI: simulated, one sum
    in 20,000 and 0.2 % of the result) the vectors differ a little more. So both forms embed the same tokens, and their
    time and vectors are compared.
    """
    import numpy as np  # 100 ms to import, and only a new copy is compared

    # Whole words and word pieces of all frequencies; a hash of the position is as good as any text.
    ids = 1000 + np.arange(_TEXTS * _TOKENS, dtype=np.int64).reshape(_TEXTS, _TOKENS) * 7919 % 29000
    sessions = (candidate, exact)
    vectors = [_vectors(session, ids) for session in sessions]  # the first run of a session allocates
    if float((vectors[0] * vectors[1]).sum(axis=1).min()) < _MIN_COSINE:
        return False
    runs = [[_seconds(session, ids) for session in sessions] for _ in range(_RUNS)]
    fastest = [min(seconds) for seconds in zip(*runs, strict=True)]
    return bool(fastest[0] * _MIN_GAIN <= fastest[1])


def _seconds(session: InferenceSession, ids: NDArray[Any]) -> float:
    """CPU time of this thread, the one that a session computes in: other processes do not count."""
    start = time.thread_time()
    _vectors(session, ids)
    return time.thread_time() - start


def _vectors(session: InferenceSession, ids: NDArray[Any]) -> NDArray[Any]:
    import numpy as np  # as above

    arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    output = session.run(["last_hidden_state"], arrays)[0].mean(axis=1)
    vectors: NDArray[Any] = output / np.linalg.norm(output, axis=1, keepdims=True)
    return vectors


# ── calls into ONNX Runtime ───────────────────────────────────────────────────────────────────────────────────
# None of them may be running when the interpreter ends: a daemon thread that returns from C++ code after that is ended
# by the interpreter in a place where C++ allows no exception, and the process aborts: "terminate called without an
# active exception".

# One call takes a tenth of a second, and making the ready copy of a model a few seconds, on a busy machine more.
_WAIT_SECONDS = 30.0

_changed = threading.Condition()
_running = 0
_ended = False


@contextlib.contextmanager
def native_call() -> Iterator[None]:
    """A call that the end of the interpreter waits for. Once it has begun, no daemon thread gets in any more."""
    global _running
    with _changed:
        while _ended and threading.current_thread().daemon:
            _changed.wait()  # for ever: the thread ends with the process
        _running += 1
    try:
        yield
    finally:
        with _changed:
            _running -= 1
            _changed.notify_all()


@atexit.register
def _end() -> None:
    global _ended
    with _changed:
        _ended = True
        _changed.wait_for(lambda: _running == 0, _WAIT_SECONDS)
