//! The JSON Schema (draft 2020-12) of the archive form.

use super::{Format, VERSION};
use thread::schema::{BASE, DIALECT, schema as thread_schema};
use thread::{Json, Object, Profile, Version};

/// The name of the schema's file, which is the end of its `$id`.
pub const FILE_NAME: &str = "loomline-archive-1.json";

/// The schema of an archive.
///
/// Every text that [`Archive::decode`](super::Archive::decode) refuses is invalid. The root must
/// have the members of a document's root, under the newest version's schema. Of a record it checks
/// only the members that identify its kind: records are stored unchanged and validated by their
/// readers.
///
/// ```
/// let schema = loomline_interop::archive::schema();
/// let kind = schema.pointer("/$defs/PydanticAiMessage/properties/kind/enum/1");
/// assert_eq!(kind.and_then(thread::Json::as_str), Some("response"));
/// ```
#[must_use]
pub fn schema() -> Json {
    let document = thread_schema(&Version::NEWEST, Profile::Lenient).unwrap_or_default();
    let root = |member: &str| document.pointer(&format!("/properties/{member}")).cloned();
    let mut members = Object::new().with("archive", version());
    for member in ROOT {
        members = members.with_some(member, root(member));
    }
    let runs = described("What was said, in the order in which it happened.")
        .with("type", "array")
        .with("items", reference("Run"));
    let mut defs = Object::new()
        .with("Run", run())
        .with("Superseded", superseded());
    for (_, name, record) in records() {
        defs.insert(name, record);
    }
    for name in ["Timestamp", "AgentConfig", "Relationships", "ThreadLink"] {
        let ty = document.pointer(&format!("/$defs/{name}"));
        defs = defs.with_some(name, ty.cloned());
    }
    let required = [
        "archive",
        "thread_id",
        "created_at",
        "updated_at",
        "agents",
        "runs",
    ];
    Object::new()
        .with("$schema", DIALECT)
        .with("$id", format!("{BASE}{FILE_NAME}"))
        .with("title", format!("Loomline archive {VERSION}"))
        .with("description", ABOUT)
        .with("type", "object")
        .with("required", texts(&required))
        .with(
            "properties",
            members
                .with("runs", runs)
                .with("superseded", superseded_list()),
        )
        .with("$defs", defs)
        .into()
}

const ABOUT: &str = "Everything that a conversation's histories said, each record as it came: \
     `loomline convert --to archive`.\n\nMembers that are not named here may have any form. What a \
     schema can't say: the `agent_id` of a run is a key of `agents`; a record is one that its format's \
     library takes.";

/// The root members that an archive shares with a document.
const ROOT: [&str; 7] = [
    "thread_id",
    "created_at",
    "updated_at",
    "title",
    "metadata",
    "relationships",
    "agents",
];

/// The version of the form; each 1.x is read.
fn version() -> Object {
    described("The version of this form, `1.` and anything.")
        .with("type", "string")
        .with("pattern", "^1(\\.|$)")
}

/// The schema of a record for each format.
fn records() -> [(Format, &'static str, Object); 4] {
    let message = object(
        "A message of Pydantic AI, a `ModelRequest` or a `ModelResponse`, every member as it came.",
        &["kind", "parts"],
        Object::new()
            .with(
                "kind",
                described("Whose it is.").with("enum", texts(&["request", "response"])),
            )
            .with("parts", list("What was said, by `part_kind`.")),
    );
    let ui_message = object(
        "A UIMessage of the AI SDK, every member as it came.",
        &["id", "role", "parts"],
        Object::new()
            .with("id", text("The id of the message."))
            .with(
                "role",
                described("Who said it.").with("enum", texts(&["system", "user", "assistant"])),
            )
            .with("parts", list("What was said, by `type`.")),
    );
    let chunk = object(
        "A chunk of a UI message stream of the AI SDK, every member as it came.",
        &["type"],
        Object::new().with(
            "type",
            text("What it is: `start`, `text-delta` or any other."),
        ),
    );
    let turn = object(
        "A turn of a ThreadProtocol document, every member as it came.",
        &["turn_type"],
        Object::new().with("turn_type", text("Whose turn it is: `user` or `agent`.")),
    );
    [
        (Format::PydanticAi, "PydanticAiMessage", message),
        (Format::AiSdkUi, "UiMessage", ui_message),
        (Format::AiSdkStream, "UiMessageChunk", chunk),
        (Format::Thread, "ThreadTurn", turn),
    ]
}

fn run() -> Object {
    let members = Object::new()
        .with("format", format())
        .with("agent_id", agent_id())
        .with("records", list("What was said, in order."))
        .with("superseded", superseded_list())
        .with("run_id", text("The id that Pydantic AI gave the run; with `pydantic-ai`."))
        .with("root", described("The root of the document that the turns are of, `turns` left empty; with `thread`.").with("type", "object"))
        .with("ai_sdk", described("The major version of `ai` that the records are from: 5, 6 or 7; with `ai-sdk-ui` and `ai-sdk-stream`.").with("type", "integer").with("minimum", 0))
        .with("at", text("The instant of what has none, in RFC 3339; with `ai-sdk-ui` and `ai-sdk-stream`."))
        .with("done", described("Whether the stream ended with `[DONE]`; with `ai-sdk-stream`.").with("type", "boolean"))
        .with("done_at", described("How many chunks stood before each other `[DONE]`; with `ai-sdk-stream`.").with("type", "array").with("items", Object::new().with("type", "integer").with("minimum", 0)))
        .with("continues", described("The message that the stream goes on with, with nothing but its open calls; with `ai-sdk-stream`.").with("type", "object"));
    let unnamed = Object::new().with("not", having("format", Object::new()));
    let rules = records().map(|(format, name, _)| {
        let records = property("records", items(name));
        let of_run = Object::new()
            .with("if", unnamed.clone())
            .with("then", records.clone());
        let superseded = property("superseded", Object::new().with("items", of_run));
        let both = vec![records, superseded];
        when(format, Object::new().with("allOf", both))
    });
    object(
        "One run of one agent: what began it, what it said, what it was answered.",
        &["format", "records"],
        members,
    )
    .with("allOf", rules.to_vec())
}

/// Records that were replaced.
fn superseded() -> Object {
    let members = Object::new()
        .with(
            "at",
            described("Where they stood, counted from 0.")
                .with("type", "integer")
                .with("minimum", 0),
        )
        .with("format", format())
        .with("agent_id", agent_id())
        .with(
            "head",
            described("What else was known of the run, if it is gone as a whole.")
                .with("type", "object"),
        )
        .with(
            "records",
            list("What stood there, in order; without a `format`, in that of the run."),
        );
    let rules = records().map(|(format, name, _)| when(format, property("records", items(name))));
    object(
        "Records that a rewritten history no longer has.",
        &["at", "records"],
        members,
    )
    .with("allOf", rules.to_vec())
}

fn superseded_list() -> Object {
    list("What a rewritten history no longer has.").with("items", reference("Superseded"))
}

fn format() -> Object {
    described("What the records are.").with("enum", texts(&Format::ALL.map(Format::name)))
}

fn agent_id() -> Object {
    text("The agent that ran, a key of `agents`.")
}

/// A rule for the objects of this format.
fn when(format: Format, then: Object) -> Object {
    let named = Object::new().with("const", format.name());
    Object::new()
        .with("if", having("format", named))
        .with("then", then)
}

/// An object that has this member.
fn having(member: &str, schema: Object) -> Object {
    property(member, schema).with("required", texts(&[member]))
}

fn property(member: &str, schema: Object) -> Object {
    Object::new().with("properties", Object::new().with(member, schema))
}

fn items(name: &str) -> Object {
    Object::new().with("items", reference(name))
}

fn object(about: &str, required: &[&str], members: Object) -> Object {
    described(about)
        .with("type", "object")
        .with("required", texts(required))
        .with("properties", members)
}

fn described(about: &str) -> Object {
    Object::new().with("description", about)
}

fn text(about: &str) -> Object {
    described(about).with("type", "string")
}

fn list(about: &str) -> Object {
    described(about).with("type", "array")
}

fn reference(name: &str) -> Object {
    Object::new().with("$ref", format!("#/$defs/{name}"))
}

fn texts(texts: &[&str]) -> Json {
    texts.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Archive;
    use serde_json::{Value, json};
    use thread::Limits;

    fn errors(archive: &Value) -> Vec<String> {
        let schema = schema().to_value().unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors = validator.iter_errors(archive);
        let mut places: Vec<_> = errors
            .map(|error| format!("{} {}", error.instance_path(), error.kind().keyword()))
            .collect();
        places.sort();
        places
    }

    fn archive() -> Value {
        json!({
            "archive": "1.0.0", "thread_id": "t", "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z", "title": null, "x": 1,
            "agents": {"a": {"agent_id": "a", "agent_name": "A"}},
            "runs": [
                {"format": "pydantic-ai", "agent_id": "a", "run_id": "r", "superseded": [{"at": 0, "records": [{"kind": "request", "parts": []}]}],
                    "records": [{"kind": "request", "parts": [], "x": 1}, {"kind": "response", "parts": [5]}]},
                {"format": "ai-sdk-ui", "ai_sdk": 7, "superseded": [{"at": 0, "format": "ai-sdk-stream", "records": [{"type": "x"}]}], "records": [{"id": "", "role": "user", "parts": []}]},
                {"format": "ai-sdk-stream", "done": true, "records": [{"type": "start"}, {"type": "data-x", "data": 1}]},
                {"format": "thread", "root": {"version": "2.0.0", "turns": []}, "records": [{"turn_type": "user"}]},
            ],
        })
    }

    #[test]
    fn the_schema_is_one_and_every_type_is_used() {
        let schema = schema();
        jsonschema::draft202012::meta::validate(&schema.to_value().unwrap()).unwrap();
        let text = schema.to_text();
        for name in schema
            .get("$defs")
            .and_then(Json::as_object)
            .unwrap()
            .keys()
        {
            assert!(text.contains(&format!("\"#/$defs/{name}\"")), "{name}");
        }
        assert_eq!(errors(&archive()), Vec::<String>::new());
    }

    #[test]
    fn an_error_points_into_the_record_that_is_wrong() {
        let mut archive = archive();
        archive["runs"][0]["records"][1]["kind"] = json!("question");
        archive["runs"][1]["superseded"] =
            json!([{"at": 1, "records": [{"id": "x", "role": "user"}]}]);
        archive["runs"][2]["records"][0] = json!("start");
        archive["runs"][3]["records"][0]["turn_type"] = json!(null);
        archive["agents"]["a"]["agent_name"] = json!(7);
        let expected = [
            "/agents/a/agent_name type",
            "/runs/0/records/1/kind enum",
            "/runs/1/superseded/0/records/0 required",
            "/runs/2/records/0 type",
            "/runs/3/records/0/turn_type type",
        ];
        assert_eq!(errors(&archive), expected);
    }

    /// Replaces each value of an archive by others: if the schema accepts the result, it can be
    /// read.
    #[test]
    fn what_the_schema_takes_can_be_read() {
        let others = [
            json!(null),
            json!(1),
            json!("x"),
            json!("2.0.0"),
            json!([]),
            json!({}),
            json!([null]),
        ];
        let places = [
            "/archive",
            "/thread_id",
            "/agents",
            "/runs",
            "/title",
            "/runs/0",
            "/runs/0/format",
            "/runs/0/agent_id",
            "/runs/0/records",
            "/runs/1/ai_sdk",
        ];
        let mut n_refused = 0;
        for place in places {
            for other in &others {
                let mut archive = archive();
                *archive.pointer_mut(place).unwrap() = other.clone();
                let read = Archive::decode(archive.to_string(), &Limits::default());
                n_refused += usize::from(read.is_err());
                assert!(read.is_ok() || !errors(&archive).is_empty(), "{archive}");
            }
        }
        assert!(n_refused > 20, "{n_refused}");
    }
}
