from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from rig import ROOT, Server

CLIENT = ROOT / "clients/python"
FILES = ("LICENSE-APACHE", "LICENSE-MIT", "README.md", "hatch_build.py", "pyproject.toml", "src")
INSTALL = ("install", "--quiet", "--no-compile", "--disable-pip-version-check")
CONVERSATION = """
import sys
from importlib.resources import files
from loomline import Loomline
assert files("loomline").joinpath("py.typed").is_file()
with Loomline(sys.argv[1]) as client:
    print(client.thread("installed").run("compute 6*7").text)
"""


def build(source: Path, target: Path, kind: str, **environment: str) -> list[Path]:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    variables = {name: value for name, value in os.environ.items() if name != "LOOMLINE_BINARY"}
    variables.update(environment)
    ended = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return sorted(target.iterdir())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without the repository around it."""
    folder = tmp_path_factory.mktemp("source")
    for name in FILES:
        copy = shutil.copytree if (CLIENT / name).is_dir() else shutil.copy
        copy(CLIENT / name, folder / name)
    return folder


def test_the_wheel_and_the_sdist_work_alone(source: Path, tmp_path: Path, server: Server) -> None:
    (sdist,) = build(source, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert {*FILES, "PKG-INFO"} <= {path.name for path in unpacked.iterdir()}
    (wheel,) = build(unpacked, tmp_path / "wheel", "wheel")
    assert wheel.name.endswith("-py3-none-any.whl")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", sdist, wheel], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout

    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *INSTALL, wheel], check=True)
    said = subprocess.run(
        [python, "-c", CONVERSATION, server.base], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said.stdout == "compute gave 42.\n", said.stderr


def test_the_wheel_with_the_binary_has_it_as_a_script(source: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho loomline of the wheel\n")
    program.chmod(0o755)
    (wheel,) = build(source, tmp_path / "wheel", "wheel", LOOMLINE_BINARY=str(program))
    assert wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        (script,) = (entry for entry in archive.infolist() if entry.filename.endswith(".data/scripts/loomline"))
        assert script.external_attr >> 16 & 0o777 == 0o755
        (metadata,) = (name for name in archive.namelist() if name.endswith("/WHEEL"))
        assert b"Root-Is-Purelib: false" in archive.read(metadata)
    folder = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", *INSTALL, "--no-deps", "--target", folder, wheel], check=True
    )
    said = subprocess.run([folder / "bin/loomline"], capture_output=True, text=True, check=True)
    assert said.stdout == "loomline of the wheel\n"


def test_a_binary_that_is_no_program_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="expected a program"):
        build(source, tmp_path, "wheel", LOOMLINE_BINARY=str(source / "README.md"))
