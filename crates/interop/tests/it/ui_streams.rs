//! UI message streams as a server may send them, sensible or not, and those that were recorded.

use crate::dice::Dice;
use crate::reference::reference;
use loomline_interop::ai_sdk::sse::Chunks;
use loomline_interop::ai_sdk::{Major, ReduceError, Reduced, Reducer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use thread::Json;

/// The folder of recorded streams, if it is there.
pub(crate) fn recorded(what: &str) -> Option<PathBuf> {
    let shared = reference("streams that the real library recorded")?;
    let folder = shared.join("vectors").join(what);
    assert!(folder.is_dir(), "{} is not there", folder.display());
    Some(folder)
}

/// The files of a folder with this ending, in order.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    paths.sort();
    paths
}

pub(crate) fn json(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap();
    let limits = thread::Limits {
        max_depth: 1024,
        ..thread::Limits::default()
    };
    Json::parse_with(&text, &limits).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The chunks of recorded bytes, taken in pieces of seven.
pub(crate) fn chunks_of(bytes: &[u8]) -> Vec<Json> {
    let mut stream = Chunks::new();
    let mut chunks = Vec::new();
    for piece in bytes.chunks(7) {
        stream.push(piece, &mut chunks).unwrap();
    }
    chunks
}

/// A value as JavaScript holds it: every number is a double, and keys have no order.
pub(crate) fn in_javascript(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(bool) => (*bool).into(),
        Json::Number(number) => (number.as_f64().unwrap() + 0.0).into(),
        Json::String(string) => string.as_str().into(),
        Json::Array(items) => items.iter().map(in_javascript).collect(),
        Json::Object(object) => {
            let members = object
                .iter()
                .map(|(key, value)| (key.to_owned(), in_javascript(value)));
            Value::Object(members.collect::<Map<String, Value>>())
        }
    }
}

/// What became of a stream.
pub(crate) struct Watched {
    /// Every message that was shown.
    pub(crate) shown: Vec<Json>,
    pub(crate) error: Option<ReduceError>,
    pub(crate) reduced: Reduced,
}

/// Reduces a stream and looks at every message that is shown.
pub(crate) fn watch(mut reducer: Reducer, chunks: &[Json]) -> Watched {
    let mut shown = Vec::new();
    let mut error = None;
    for chunk in chunks {
        match reducer.push(chunk) {
            Ok(pushed) if pushed.visible => shown.push(reducer.message()),
            Ok(_) => {}
            Err(refused) => {
                error = Some(refused);
                break;
            }
        }
    }
    Watched {
        shown,
        error,
        reduced: reducer.finish(),
    }
}

/// Chunks without their braces; words in capitals stand for one of [`WORDS`].
const CHUNKS: &[&str] = &[
    r#""type":"start""#,
    r#""type":"start","messageId":"MESSAGE","messageMetadata":MORE"#,
    r#""type":"start-step""#,
    r#""type":"start-step""#,
    r#""type":"finish-step""#,
    r#""type":"reset-step""#,
    r#""type":"text-start","id":"ID""#,
    r#""type":"text-delta","id":"ID","delta":"DELTA""#,
    r#""type":"text-delta","id":"ID","delta":"DELTA""#,
    r#""type":"text-end","id":"ID""#,
    r#""type":"reasoning-start","id":"ID""#,
    r#""type":"reasoning-delta","id":"ID","delta":"DELTA""#,
    r#""type":"reasoning-end","id":"ID""#,
    r#""type":"tool-input-start","toolCallId":"CALL","toolName":"NAME""#,
    r#""type":"tool-input-start","toolCallId":"CALL","toolName":"NAME","inputEncoding":"ENCODING""#,
    r#""type":"tool-input-start","toolCallId":"CALL","toolName":"NAME","title":"T""#,
    r#""type":"tool-input-delta","toolCallId":"CALL","inputTextDelta":"PIECE""#,
    r#""type":"tool-input-delta","toolCallId":"CALL","inputTextDelta":"PIECE""#,
    r#""type":"tool-input-delta","toolCallId":"CALL","inputTextDelta":"PIECE""#,
    r#""type":"tool-input-available","toolCallId":"CALL","toolName":"NAME","input":VALUE"#,
    r#""type":"tool-input-error","toolCallId":"CALL","toolName":"NAME","input":VALUE,"errorText":"bad""#,
    r#""type":"tool-approval-request","toolCallId":"CALL","approvalId":"ID""#,
    r#""type":"tool-approval-request","toolCallId":"CALL","approvalId":"ID","reason":"why","inputSchemaInput":VALUE"#,
    r#""type":"tool-approval-response","approvalId":"ID","approved":FLAG,"reason":"so""#,
    r#""type":"tool-output-available","toolCallId":"CALL","output":VALUE"#,
    r#""type":"tool-output-available","toolCallId":"CALL","output":VALUE,"preliminary":FLAG"#,
    r#""type":"tool-output-error","toolCallId":"CALL","errorText":"failed""#,
    r#""type":"tool-output-denied","toolCallId":"CALL""#,
    r#""type":"source-url","sourceId":"s","url":"https://a""#,
    r#""type":"source-document","sourceId":"s","mediaType":"text/csv","title":"t""#,
    r#""type":"file","url":"data:,","mediaType":"text/plain""#,
    r#""type":"reasoning-file","url":"data:,","mediaType":"text/plain""#,
    r#""type":"custom","kind":"a.b""#,
    r#""type":"steering-message","id":"ID","parts":[{"type":"text","text":"stop"}]"#,
    r#""type":"data-x","data":VALUE"#,
    r#""type":"data-x","data":VALUE,"id":"ID""#,
    r#""type":"data-y","data":VALUE,"id":"ID","transient":FLAG"#,
    r#""type":"message-metadata","messageMetadata":MORE"#,
    r#""type":"error","errorText":"down""#,
    r#""type":"abort","reason":"enough""#,
    r#""type":"finish","finishReason":"stop","messageMetadata":MORE"#,
];

const WORDS: &[(&str, &[&str])] = &[
    ("MESSAGE", &["m", "m", "n"]),
    (
        "MORE",
        &["null", r#"{"a":{"b":1}}"#, r#"{"a":{"c":[1]}}"#, "[1]"],
    ),
    ("ID", &["a", "b"]),
    ("DELTA", &["", "ab", "ž😀", "\\n"]),
    ("CALL", &["c1", "c2"]),
    ("NAME", &["t", "t", "u-v"]),
    ("ENCODING", &["text", "json"]),
    (
        "PIECE",
        &[
            r#"{\"a\""#,
            ":1",
            ",",
            "}",
            "[",
            r#"\""#,
            "tr",
            "-",
            " ",
            r"\\u0",
            "ž",
        ],
    ),
    (
        "VALUE",
        &[
            r#"{"n":1.0}"#,
            r#"[1,{"k":null}]"#,
            "null",
            r#""s""#,
            "-2e3",
        ],
    ),
    ("FLAG", &["true", "false"]),
];

/// What any chunk may say besides; most clients read none of it.
const BESIDES: &[&str] = &[
    r#","providerMetadata":{"p":{"k":1}}"#,
    r#","providerMetadata":{"q":{}}"#,
    r#","dynamic":true"#,
    r#","providerExecuted":true"#,
    r#","toolMetadata":{"m":1}"#,
    r#","x":1"#,
];

/// A chunk that a client's schema takes, of any type: what it goes on with need not be there.
pub(crate) fn chunk(dice: &mut Dice<'_>) -> Json {
    let mut text = dice.pick(CHUNKS).to_owned();
    for (word, meanings) in WORDS {
        if text.contains(word) {
            text = text.replace(word, dice.pick(meanings));
        }
    }
    if dice.one_in(4) {
        text.push_str(dice.pick(BESIDES));
    }
    Json::parse(&format!("{{{text}}}")).unwrap()
}

/// A stream of which a client takes everything.
pub(crate) fn stream(major: Major, bytes: &[u8]) -> Vec<Json> {
    let mut dice = Dice::new(bytes);
    let mut taken = Vec::new();
    let mut reducer = Reducer::new(major, None).checked();
    for _ in bytes {
        let next = chunk(&mut dice);
        let mut tried = reducer.clone();
        if tried.push(&next).is_ok() {
            reducer = tried;
            taken.push(next);
        }
    }
    taken
}

/// A chunk of which one field is another, or missing.
pub(crate) fn spoiled(bytes: &[u8]) -> Json {
    let mut dice = Dice::new(bytes);
    let mut spoiled = chunk(&mut dice);
    let fields = [
        "type",
        "id",
        "delta",
        "toolCallId",
        "toolName",
        "input",
        "output",
        "providerMetadata",
        "toolMetadata",
        "dynamic",
        "title",
        "errorText",
        "finishReason",
        "reason",
        "citations",
        "inputEncoding",
        "parts",
        "approvalId",
        "approved",
        "data",
        "transient",
        "messageId",
        "messageMetadata",
        "url",
        "mediaType",
        "preliminary",
        "isAutomatic",
        "signature",
        "kind",
    ];
    let values = [
        "1",
        "\"x\"",
        "true",
        "null",
        "[]",
        "{}",
        r#"{"p":{"k":[null]}}"#,
        r#"{"p":1}"#,
        "\"interrupted\"",
        "\"unknown\"",
        "\"text\"",
        r#"[{"source":{"type":"source","sourceType":"url","id":"i","url":"u"},"startIndex":1}]"#,
        r#"[{"source":{"type":"source","sourceType":"document","id":"i"}}]"#,
        r#"[{"type":"file","mediaType":"a/b","url":"u","providerReference":{"p":"r"}}]"#,
        r#"[{"type":"text","text":1}]"#,
    ];
    for _ in 0..dice.roll(3) {
        let field = dice.pick(&fields);
        let object = spoiled.as_object_mut().unwrap();
        if dice.one_in(3) {
            object.remove(field);
        } else {
            object.insert(field, Json::parse(dice.pick(&values)).unwrap());
        }
    }
    spoiled
}
