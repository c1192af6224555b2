"""Puts the server's binary into the wheel if `LOOMLINE_BINARY` names one. The wheel is then for Linux on x86-64."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORM_TAG = "py3-none-manylinux_2_28_x86_64"


class BinaryHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get("LOOMLINE_BINARY")
        if binary is None:
            return
        if not os.access(binary, os.X_OK):
            raise FileNotFoundError(f"LOOMLINE_BINARY={binary}: expected a program")
        build_data["pure_python"] = False
        build_data["tag"] = PLATFORM_TAG
        build_data["shared_scripts"][str(Path(binary).resolve())] = "loomline"
