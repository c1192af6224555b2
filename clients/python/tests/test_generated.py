from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

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


def classes_in(hint: Any) -> Iterator[type]:
    """The classes of this package in a type."""
    for part in get_args(hint):
        yield from classes_in(part)
    origin = get_origin(hint) or hint
    if isinstance(origin, type) and origin.__module__.startswith("loomline."):
        yield origin


def test_every_type_that_users_receive_is_exported() -> None:
    exported = {getattr(loomline, name) for name in loomline.__all__ if name != "models"}
    received: set[type] = set()
    for each in exported:
        if not isinstance(each, type):
            received |= set(classes_in(each))
        elif each.__module__ != "loomline.models":
            methods = [member for name, member in vars(each).items() if inspect.isfunction(member) and name[0] != "_"]
            for hint in [*get_type_hints(each).values(), *(get_type_hints(method)["return"] for method in methods)]:
                received |= set(classes_in(hint))
    assert loomline.ThreadFinishedEvent in received
    assert {each.__name__ for each in received - exported} == set()


@pytest.mark.timeout(300)
def test_the_types_are_sound() -> None:
    mypy = Path(sys.executable).with_name("mypy")
    command = [mypy, "--strict", "--cache-dir", ROOT / "target/mypy"]
    ended = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
