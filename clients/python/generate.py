#!/usr/bin/env python3
"""Writes the generated files of the client: the models from an OpenAPI document, and the sync surface from the async one.

Usage: generate.py [DOCUMENT]

DOCUMENT is a path or an address. Default: the document in the repository of the server.
"""

import copy
import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datamodel_code_generator import (
    DataModelType,
    InputFileType,
    LiteralType,
    PythonVersion,
    generate,
)

FOLDER = Path(__file__).parent
PACKAGE = FOLDER / "src/loomline"
TESTS = FOLDER / "tests"
DOCUMENT = FOLDER.parents[1] / "crates/server/tests/openapi.json"
HEADER = '"""The types of the HTTP API. Written by generate.py from the OpenAPI document of the server: do not edit."""'
SCHEMAS = "#/components/schemas/"
EVENT_ID = {"type": "string", "description": "The id in the stream: send it as `after` to resume behind this event."}

SYNC_HEADER = "# Written by generate.py from {}: do not edit.\n"
SYNC_WORDS = {
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Generator",
    "aiter_bytes": "iter_bytes",
    "aclosing": "closing",
    "aclose": "close",
    "aread": "read",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "anext": "next",
    "_async": "_sync",
    "asyncio": "time",
    "async_client": "client",
    "async_thread": "thread",
}


def restricted(document: dict[str, Any]) -> dict[str, Any]:
    """A document with the objects that the routes of `/api/v1` return, in a form that tolerates newer servers."""
    schemas = {name: tolerant(schema) for name, schema in document["components"]["schemas"].items()}
    for name in references(schemas["EventRecord"]):
        event = schemas[name]
        event["properties"] = {"id": EVENT_ID, **event["properties"]}
        event["required"] = ["id", *event["required"]]
    scalars = {name: schema for name, schema in schemas.items() if is_scalar(schema)}
    schemas = {name: inlined(schema, scalars) for name, schema in schemas.items()}
    reached: dict[str, Any] = {}
    left = references(list(returned(document)))
    while left:
        name = left.pop()
        if name not in reached and name not in scalars:
            reached[name] = schemas[name]
            left |= references(schemas[name])
    del reached["ServerSentEvent"]
    objects = {name: schema for name, schema in sorted(reached.items()) if "oneOf" not in schema}
    info = {"title": "Loomline", "version": "1"}
    return {"openapi": document["openapi"], "info": info, "paths": {}, "components": {"schemas": objects}}


def returned(document: dict[str, Any]) -> Iterator[Any]:
    """The bodies that the routes of `/api/v1` return; the stream, if there is also a page."""
    for path, item in document["paths"].items():
        if path.startswith("/api/v1/"):
            for route in item.values():
                for response in route["responses"].values():
                    content = response.get("content", {})
                    yield content.get("text/event-stream", content)


def tolerant(schema: Any) -> Any:
    """A schema that also accepts unknown fields, unknown words and other numbers."""
    if isinstance(schema, list):
        return [tolerant(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("discriminator", "minimum", "examples")
    schema = {name: tolerant(value) for name, value in schema.items() if name not in left_out}
    if "properties" in schema or schema.get("additionalProperties") is False:
        schema.pop("additionalProperties", None)
    if len(schema.get("enum", [])) > 1:
        words = {"type": "string", "enum": schema.pop("enum")}
        schema.pop("type", None)
        schema["anyOf"] = [words, {"type": "string"}]
    if "allOf" in schema:
        schema["allOf"] = [flattened(entry) for entry in schema["allOf"]]
    kinds = [entry.get("properties", {}) for entry in schema.get("oneOf", [])]
    if kinds and all("kind" in kind for kind in kinds):
        return one_object(schema, kinds)
    return schema


def one_object(schema: dict[str, Any], kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """One object in place of one for each `kind`: its words are known, and the other fields are those of all kinds."""
    words = [word for kind in kinds for word in kind["kind"]["enum"]]
    kind = {"anyOf": [{"type": "string", "enum": words}, {"type": "string"}]}
    fields = {name: {"type": field["type"]} for kind in kinds for name, field in kind.items()}
    kept = {name: value for name, value in schema.items() if name != "oneOf"}
    return {**kept, "type": "object", "required": ["kind"], "properties": {**fields, "kind": kind}}


def flattened(schema: dict[str, Any]) -> dict[str, Any]:
    """A member of `allOf` without the alternative that it is absent."""
    present = [entry for entry in schema.get("oneOf", []) if entry != {"type": "null"}]
    return present[0] if len(present) == 1 else schema


def is_scalar(schema: dict[str, Any]) -> bool:
    return not any(name in schema for name in ("properties", "oneOf", "allOf", "additionalProperties"))


def inlined(schema: Any, scalars: dict[str, Any]) -> Any:
    """A schema with the scalars in place of the references to them."""
    if isinstance(schema, list):
        return [inlined(entry, scalars) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("$ref", "").removeprefix(SCHEMAS)
    if name in scalars:
        beside = {member: value for member, value in schema.items() if member != "$ref"}
        return {**copy.deepcopy(scalars[name]), **beside}
    return {member: inlined(value, scalars) for member, value in schema.items()}


def references(value: Any) -> set[str]:
    return set(re.findall(f'"{SCHEMAS}([^"]+)"', json.dumps(value)))


def models(document: dict[str, Any]) -> str:
    """The module `models`."""
    text = generate(
        json.dumps(restricted(document)),
        input_file_type=InputFileType.OpenAPI,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_310,
        base_class="loomline._model.Model",
        snake_case_field=True,
        enum_field_as_literal=LiteralType.All,
        use_union_operator=True,
        use_standard_collections=True,
        use_schema_description=True,
        use_field_description=True,
        use_single_line_docstring=True,
        use_double_quotes=True,
        custom_file_header=HEADER,
        formatters=[],
    )
    assert isinstance(text, str)
    return text.replace("Any | None", "Any")


def sync(text: str) -> str:
    """A module of the sync surface, from that of the async one."""
    text = re.sub(r"\b(async|await) ", "", text)
    for word, replacement in SYNC_WORDS.items():
        text = re.sub(rf"\b{word}\b", replacement, text)
    return re.sub(r"\bAsync(?=[A-Z])", "", text)


def generated(document: dict[str, Any]) -> dict[Path, str]:
    """The text of each generated file."""
    modules = {path: PACKAGE / "_sync" / path.name for path in sorted((PACKAGE / "_async").glob("*.py"))}
    tests = {path: path.with_name(path.name.replace("async", "sync")) for path in sorted(TESTS.glob("*_async.py"))}
    files = {PACKAGE / "models.py": models(document)}
    for source, target in {**modules, **tests}.items():
        header = SYNC_HEADER.format(source.relative_to(FOLDER))
        files[target] = header + sync(source.read_text())
    return files


def read(place: str) -> dict[str, Any]:
    """The document at a path or an address."""
    if place.startswith(("http://", "https://")):
        with urllib.request.urlopen(place) as response:
            document: dict[str, Any] = json.load(response)
            return document
    return dict(json.loads(Path(place).read_text()))


if __name__ == "__main__":
    for path, text in generated(read(sys.argv[1] if len(sys.argv) > 1 else str(DOCUMENT))).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
