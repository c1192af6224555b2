from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import generate
import httpx
import loomline
import pytest
from rig import ROOT, Server

CLIENT = ROOT / "clients/python"


def test_the_generated_files_are_those_of_the_running_server(server: Server) -> None:
    document = httpx.get(f"{server.base}/openapi.json").json()
    stale = [path for path, text in generate.generated(document).items() if path.read_text() != text]
    assert stale == [], "run clients/python/generate.py"


def test_the_version_is_that_of_the_server() -> None:
    found = re.search(r'^\[workspace\.package\][^\[]*^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M | re.S)
    assert found is not None
    assert f'\nversion = "{found[1]}"\n' in (CLIENT / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ["LICENSE-APACHE", "LICENSE-MIT"])
def test_the_licenses_are_those_of_the_repository(name: str) -> None:
    assert (CLIENT / name).read_text() == (ROOT / name).read_text()


def test_both_surfaces_have_the_same_methods() -> None:
    for name in ("Loomline", "Thread", "ThreadRequest", "Objects", "Stream"):
        methods = [
            {member for member in vars(each) if not member.startswith("_")}
            for each in (getattr(loomline, name), getattr(loomline, f"Async{name}"))
        ]
        assert methods[0] == methods[1] != set()


@pytest.mark.timeout(300)
def test_the_types_are_sound() -> None:
    mypy = Path(sys.executable).with_name("mypy")
    command = [mypy, "--strict", "--cache-dir", ROOT / "target/mypy"]
    ended = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
