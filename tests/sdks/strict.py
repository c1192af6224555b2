"""What the libraries' types say, held to the letter.

The libraries read what they do not know without a word, so that an older one goes on working. Here every value is validated
against its type, and every key that a type does not have is a fault.
"""

import collections.abc
import os
import types
from typing import IO, Annotated, Any, List, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType, get_type_hints, is_typeddict

# A fault, in short; a union lists each of its members.
SHOWN = 6


def _of_json(hint: Any) -> Any:
    """The same type with lists for iterables, which pydantic would only look at when they are read, and without files."""
    origin, args = get_origin(hint), get_args(hint)
    # The arguments of a literal are values.
    if origin is None or not args or origin is Literal:
        return hint
    if origin is Annotated:
        return Annotated[(_of_json(args[0]), *hint.__metadata__)]
    inner = tuple(_of_json(arg) for arg in args)
    if origin in (collections.abc.Iterable, collections.abc.Sequence):
        return List[inner[0]]
    if origin in (Union, types.UnionType):
        return Union[tuple(arg for arg in inner if get_origin(arg) not in (IO, os.PathLike))]
    return origin[inner[0] if len(inner) == 1 else inner]


def _typed_dicts(hint: Any) -> list[Any]:
    """The typed dictionaries that a type names."""
    if is_typeddict(hint):
        return [hint]
    if isinstance(hint, TypeAliasType):
        return _typed_dicts(hint.__value__)
    return [found for arg in get_args(hint) for found in _typed_dicts(arg)]


class RequestType:
    """A request type of a library, whose dictionaries refuse keys that they do not have."""

    def __init__(self, root: Any) -> None:
        found, open_ones = {}, _typed_dicts(root)
        while open_ones:
            kind = open_ones.pop()
            if id(kind) not in found:
                found[id(kind)] = (kind, get_type_hints(kind, include_extras=True))
                open_ones += [inner for hint in found[id(kind)][1].values() for inner in _typed_dicts(hint)]
        for kind, hints in found.values():
            kind.__annotations__ = {name: _of_json(hint) for name, hint in hints.items()}
            kind.__pydantic_config__ = ConfigDict(extra="forbid")
        self.n_types = len(found)
        self.adapter = TypeAdapter(root)

    def faults(self, body: object) -> list[str]:
        """What of a request the type does not allow."""
        try:
            self.adapter.validate_python(body, strict=True)
        except ValidationError as error:
            return _faults(error)
        return []


def _faults(error: ValidationError) -> list[str]:
    faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors(include_url=False)]
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    return faults[:SHOWN] + more


def piece_faults(kind: Any, value: object) -> list[str]:
    """What of a value a type does not allow that refuses unknown keys by itself."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return _faults(error)
    return []


def _unknown(value: object, at: str) -> list[str]:
    if isinstance(value, BaseModel):
        known = [fault for name in type(value).model_fields for fault in _unknown(getattr(value, name), f"{at}.{name}")]
        return [f"{at}.{name}" for name in value.model_extra or {}] + known
    if isinstance(value, list):
        return [fault for entry in value for fault in _unknown(entry, f"{at}[]")]
    return []


def answer_faults(kind: type[BaseModel], value: object) -> tuple[list[str], list[str]]:
    """What of an answer is not as its type says: the faults, and the keys that the type does not have."""
    try:
        model = kind.model_validate(value)
    except ValidationError as error:
        return _faults(error), []
    return [], _unknown(model, kind.__name__)
