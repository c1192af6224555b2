"""The base of all models."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An object of the API.

    Fields that this version of the client does not know are kept: `part["text"]` reads one under its name in the API.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    def __getitem__(self, name: str) -> Any:
        return (self.model_extra or {})[name]
