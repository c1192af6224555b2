//! The parts of messages and users' content.

use super::{
    ANY, ARGS, ARRAY, DICT_, FLAG, Field, INSTANT, LOADED_FROM, NULL, NUMBER, OBJECT, OUTCOME,
    STRING, TEXT, TEXT_, TEXTS, Table, Then, Type, WHOLE, WHOLE_, list, may, must, object, one_of,
};

/// The side of a message on which a part may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pydantic_ai) enum Side {
    Request,
    Response,
    Either,
}

/// The side and the members of a part of this kind; `None` for an unknown kind.
pub(in crate::pydantic_ai) fn part(kind: &str) -> Option<(Side, &'static Table)> {
    Some(match kind {
        "user-prompt" => (Side::Request, &USER_PROMPT),
        "system-prompt" => (Side::Request, &SYSTEM_PROMPT),
        "tool-return" => (Side::Request, &TOOL_RETURN),
        "retry-prompt" => (Side::Request, &RETRY_PROMPT),
        "retry-feedback" => (Side::Request, &RETRY_FEEDBACK),
        "tool-availability-delta" => (Side::Request, &TOOLS_DELTA),
        "capability-load-delta" => (Side::Request, &CAPABILITY_DELTA),
        "model-settings-delta" => (Side::Request, &SETTINGS_DELTA),
        "instruction-delta" => (Side::Request, &INSTRUCTION_DELTA),
        "instruction-baseline" => (Side::Request, &INSTRUCTION_BASELINE),
        "text" => (Side::Response, &TEXT_PART),
        "thinking" => (Side::Response, &THINKING),
        "tool-call" | "builtin-tool-call" => (Side::Response, &TOOL_CALL),
        "builtin-tool-return" => (Side::Response, &BUILTIN_RETURN),
        "file" => (Side::Response, &FILE),
        "compaction" => (Side::Either, &COMPACTION),
        "speech" => (Side::Either, &SPEECH),
        _ => return None,
    })
}

/// Kinds of tools whose calls and returns need no tool name.
pub(in crate::pydantic_ai) const NAMED_BY_KIND: [&str; 2] = ["tool-search", "capability-load"];

const KIND: Field = must("part_kind", TEXT);

static USER_PROMPT: Table = Table::new(&[
    must(
        "content",
        Type::new(STRING | ARRAY, Then::List(&USER_CONTENT)),
    ),
    may("timestamp", INSTANT),
    KIND,
]);

const USER_CONTENT: Type = Type::new(STRING | OBJECT, Then::Content);

static SYSTEM_PROMPT: Table = Table::new(&[
    must("content", TEXT),
    may("timestamp", INSTANT),
    may("dynamic_ref", TEXT_),
    may("context_id", TEXT_),
    may("scope", one_of(&["conversation", "request"])),
    may("metadata", DICT_),
    KIND,
]);

static TOOL_RETURN: Table = Table::new(&[
    may("tool_name", TEXT),
    must("content", ANY),
    may("tool_call_id", TEXT),
    may("tool_kind", TEXT_),
    may("metadata", ANY),
    may("timestamp", INSTANT),
    may("outcome", OUTCOME),
    may("retry", object(&RETRY).or_null()),
    KIND,
    may("content_file_digests", TEXTS.or_null()),
]);

const CAUSE: Type = one_of(&[
    "validation_error",
    "model_retry",
    "unknown_tool",
    "unavailable_tool",
    "no_output",
]);

static RETRY: Table = Table::new(&[
    must("cause", CAUSE),
    may("attempt", WHOLE_),
    may("max_retries", WHOLE_),
]);

const ERRORS: Type = Type::new(STRING | ARRAY, Then::List(&ERROR));

const ERROR: Type = object(&Table::new(&[
    must("type", TEXT),
    must("loc", list(&Type::new(STRING | NUMBER, Then::Nothing))),
    must("msg", TEXT),
    must("input", ANY),
    may("ctx", Type::new(OBJECT, Then::Nothing)),
    may("url", TEXT),
]));

static RETRY_PROMPT: Table = Table::new(&[
    must("content", ERRORS),
    may("tool_name", TEXT_),
    may("tool_call_id", TEXT),
    may("timestamp", INSTANT),
    KIND,
]);

static RETRY_FEEDBACK: Table = Table::new(&[
    must("content", ERRORS),
    must("retry", object(&RETRY)),
    may("timestamp", INSTANT),
    KIND,
]);

static TOOLS_DELTA: Table =
    Table::new(&[may("tools_added", TEXTS), may("tool_call_id", TEXT_), KIND]);

static CAPABILITY_DELTA: Table =
    Table::new(&[may("loaded", TEXTS), may("tool_call_id", TEXT_), KIND]);

static SETTINGS_DELTA: Table = Table::new(&[
    must("settings", Type::new(OBJECT, Then::Nothing)),
    may("top_level", FLAG),
    KIND,
]);

const INSTRUCTION_ID: Type = Type::new(STRING | OBJECT | NULL, Then::Nothing);

static INSTRUCTION_DELTA: Table = Table::new(&[
    must("id", INSTRUCTION_ID),
    must("content", TEXT_),
    may("base_hash", TEXT_),
    KIND,
]);

static INSTRUCTION_BASELINE: Table = Table::new(&[
    must("instructions", list(&Type::new(OBJECT, Then::Nothing))),
    KIND,
]);

static TEXT_PART: Table = Table::new(&[
    must("content", TEXT),
    may("id", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    may("citations", list(&CITATION).or_null()),
    KIND,
]);

const CITATION: Type = object(&Table::new(&[
    must("sources", list(&Type::new(OBJECT, Then::Nothing))),
    may("anchor", object(&ANCHOR).or_null()),
]));

const ANCHOR: Table = Table::new(&[must("start", WHOLE), must("end", WHOLE), may("kind", TEXT)]);

static THINKING: Table = Table::new(&[
    must("content", TEXT),
    may("id", TEXT_),
    may("signature", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    KIND,
]);

static TOOL_CALL: Table = Table::new(&[
    may("tool_name", TEXT),
    may("args", ARGS),
    may("tool_call_id", TEXT),
    may("tool_kind", TEXT_),
    may("id", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    KIND,
]);

static BUILTIN_RETURN: Table = Table::new(&[
    may("tool_name", TEXT),
    must("content", ANY),
    may("tool_call_id", TEXT),
    may("tool_kind", TEXT_),
    may("metadata", ANY),
    may("timestamp", INSTANT),
    may("outcome", OUTCOME),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    KIND,
    may("content_file_digests", TEXTS.or_null()),
]);

static FILE: Table = Table::new(&[
    must("content", object(&BINARY)),
    may("id", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    KIND,
]);

static COMPACTION: Table = Table::new(&[
    may("content", TEXT_),
    may("id", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    may("metadata", DICT_),
    KIND,
]);

static SPEECH: Table = Table::new(&[
    must("speaker", one_of(&["user", "assistant"])),
    may("transcript", TEXT_),
    may("audio", object(&BINARY).or_null()),
    may("interrupted_at_ms", WHOLE_),
    may(
        "timestamps",
        list(&Type::new(OBJECT, Then::Nothing)).or_null(),
    ),
    may("id", TEXT_),
    may("provider_name", TEXT_),
    may("provider_details", DICT_),
    KIND,
]);

/// The members of content of this kind; `None` for an unknown kind.
pub(in crate::pydantic_ai) fn content(kind: &str) -> Option<&'static Table> {
    Some(match kind {
        "image-url" | "audio-url" | "video-url" | "document-url" => &URL,
        "binary" => &BINARY,
        "uploaded-file" => &UPLOADED,
        "text-content" => &TEXT_CONTENT,
        "structured-content" => &STRUCTURED,
        "cache-point" => &CACHE_POINT,
        _ => return None,
    })
}

static URL: Table = Table::new(&[
    must("url", TEXT),
    may("force_download", LOADED_FROM),
    may("vendor_metadata", DICT_),
    may("kind", TEXT),
    may("media_type", TEXT_),
    may("identifier", TEXT_),
]);

static BINARY: Table = Table::new(&[
    must("data", Type::new(STRING, Then::Base64)),
    must("media_type", TEXT),
    may("vendor_metadata", DICT_),
    may("kind", one_of(&["binary"])),
    may("identifier", TEXT_),
]);

static UPLOADED: Table = Table::new(&[
    must("file_id", TEXT),
    must("provider_name", TEXT),
    may("vendor_metadata", DICT_),
    may("kind", TEXT),
    may("media_type", TEXT_),
    may("identifier", TEXT_),
]);

static TEXT_CONTENT: Table = Table::new(&[
    must("content", TEXT),
    may("metadata", ANY),
    may("kind", TEXT),
]);

static STRUCTURED: Table = Table::new(&[
    may("content", TEXT),
    may("metadata", ANY),
    may("kind", TEXT),
    must("value", ANY),
    may("format", TEXT_),
    may("tag", TEXT_),
    may("description", TEXT_),
]);

static CACHE_POINT: Table = Table::new(&[may("kind", TEXT), may("ttl", one_of(&["5m", "1h"]))]);
