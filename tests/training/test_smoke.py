"""The smoke training is a job of CI; here, what it does without torch."""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TRAINING = Path(__file__).parent.parent.parent / "training"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed here")
def test_the_smoke_training_is_skipped_with_a_reason_if_torch_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(TRAINING.parent / "scripts"))
    spec = spec_from_loader("smoke", SourceFileLoader("smoke", str(TRAINING / "smoke")))
    assert spec is not None and spec.loader is not None
    smoke = module_from_spec(spec)
    spec.loader.exec_module(smoke)
    # Instead of .venv-smoke the environment of the tests: pip finds no package at all.
    monkeypatch.setattr(smoke, "ensure", lambda *_: Path(sys.prefix))
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    smoke.main()
    assert capsys.readouterr().out.startswith("skipped: torch cannot be installed; on Linux set PIP_FIND_LINKS")


@pytest.mark.parametrize("name", ["requirements.lock", "torch.lock"])
def test_every_package_of_training_is_pinned_with_hashes_and_without_a_host(name: str) -> None:
    text = (TRAINING / name).read_text(encoding="utf-8")
    assert "://" not in text
    pinned = re.split(r"^(?=[a-z])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    assert pinned
    assert all(re.match(r"[a-z0-9-]+==\S+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+$", each) for each in pinned)
