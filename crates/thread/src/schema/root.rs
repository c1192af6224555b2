//! The root, the agent registry and the relationships.

use super::context::Context;
use super::ty::Type;
use super::{BASE, DIALECT, actions, events, file_name, parts, patterns, rules, turns, words};
use crate::document::Version;
use crate::json::{Json, Object};
use crate::validate::{Profile, actions as one, root};

/// The schema of a document.
pub(super) fn schema(context: Context<'_>) -> Json {
    let version = context.version;
    let how = match context.profile {
        Profile::Lenient => "",
        Profile::Strict => ", for writing",
    };
    let mut thread = Type::new(context, "Thread")
        .fields(root::ROOT)
        .tagged("version", &[version.as_str()])
        .values("agents", "AgentConfig");
    if *version == Version::V1_0_0 {
        thread = thread.fields(one::ROOT).items("actions", "Action");
    } else {
        thread = thread.fields(root::TURNS).items("turns", "Turn");
    }
    if *version >= Version::V0_0_3 {
        thread = thread
            .fields(root::RELATIONSHIPS)
            .object("relationships", "Relationships");
    }
    let (_, thread) = thread.finish();
    let mut schema = Object::new()
        .with("$schema", DIALECT)
        .with(
            "$id",
            format!("{BASE}{}", file_name(version, context.profile)),
        )
        .with("title", format!("ThreadProtocol {version}{how}"));
    for (key, value) in &thread {
        schema.insert(key, value.clone());
    }
    let about = words::about("Thread").unwrap_or_default();
    schema.insert("description", rules::describe(context, about));
    schema.insert("$defs", defs(context));
    schema.into()
}

fn defs(context: Context<'_>) -> Object {
    let mut types = vec![timestamp(context), agent(context)];
    if *context.version >= Version::V0_0_3 {
        types.extend(relationships(context));
    }
    if *context.version == Version::V1_0_0 {
        types.extend(actions::types(context));
    } else {
        types.extend(turns::types(context));
        types.extend(parts::types(context));
        types.extend(events::types(context));
    }
    types
        .into_iter()
        .map(|(name, schema)| (name, Json::from(schema)))
        .collect()
}

fn timestamp(context: Context<'_>) -> (&'static str, Object) {
    let about = words::about("Timestamp").unwrap_or_default();
    let schema = Object::new()
        .with("description", about)
        .with("pattern", patterns::timestamp(context.profile));
    ("Timestamp", schema)
}

fn agent(context: Context<'_>) -> (&'static str, Object) {
    let agent = Type::new(context, "AgentConfig").fields(root::AGENT);
    if *context.version == Version::V1_0_0 {
        agent.fields(one::AGENT).finish()
    } else {
        agent.finish()
    }
}

fn relationships(context: Context<'_>) -> [(&'static str, Object); 2] {
    let relationships = Type::new(context, "Relationships")
        .fields(root::LINKS)
        .items("links", "ThreadLink");
    let mut link = Type::new(context, "ThreadLink").fields(root::LINK);
    if context.is_strict() {
        link = link.keyword("thread_id", "pattern", patterns::UUID);
    }
    [relationships.finish(), link.finish()]
}
