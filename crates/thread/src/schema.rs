//! JSON Schemas (draft 2020-12) of the document, generated from the tables that [`validate`] reads.
//!
//! A schema is for users who don't run this crate: editors, code generators, other languages. It
//! has the shape of every object that the protocol names, under the protocol's name. The kind of an
//! object follows from its kind member, by `if` and `then` and never by `oneOf`, so that an error
//! points into the faulty object. Unknown members and kinds are allowed, as they are in validation.
//!
//! A schema can't express rules between different places of a document; the description of its root
//! lists them. If a document breaks only such rules, the schema accepts it and [`validate`] does
//! not. In everything else the two agree.
//!
//! [`validate`]: crate::validate()

mod actions;
mod context;
mod events;
mod parts;
mod patterns;
mod root;
mod rules;
mod turns;
mod ty;
mod words;

use crate::document::Version;
use crate::json::Json;
use crate::validate::Profile;
use context::Context;

/// The schema of the documents of a version; `None` for an unknown version.
///
/// With [`Profile::Lenient`] the schema accepts everything that can be read, with
/// [`Profile::Strict`] only what may be written. Version 1.0.0 is only read; its strict schema
/// requires what strict validation requires apart from a later version.
///
/// ```
/// use loomline_thread::{Json, Profile, Version, schema};
///
/// let schema = schema(&Version::V0_0_4, Profile::Lenient).expect("a known version");
/// let id = "https://loomline.dev/schemas/threadprotocol-0.0.4.json";
/// assert_eq!(schema.get("$id").and_then(Json::as_str), Some(id));
/// let turn = schema.pointer("/$defs/AgentTurn/properties/agent_id/type");
/// assert_eq!(turn.and_then(Json::as_str), Some("string"));
/// assert_eq!(loomline_thread::schema(&Version::from("9.9.9"), Profile::Lenient), None);
/// ```
#[must_use]
pub fn schema(version: &Version, profile: Profile) -> Option<Json> {
    if !Version::KNOWN.contains(version) {
        return None;
    }
    let context = Context { version, profile };
    Some(root::schema(context))
}

/// The name of a schema's file, which is the end of its `$id`: `threadprotocol-0.0.4.json`.
#[must_use]
pub fn file_name(version: &Version, profile: Profile) -> String {
    let strict = match profile {
        Profile::Lenient => "",
        Profile::Strict => ".strict",
    };
    format!("threadprotocol-{version}{strict}.json")
}

/// The base URL of the schemas; the name of a file follows.
pub const BASE: &str = "https://loomline.dev/schemas/";

/// The dialect that the schemas are written in.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[cfg(test)]
mod tests {
    use super::*;

    /// The description of each type and of each of its members.
    fn described(schema: &Json) -> Vec<(String, Option<&str>)> {
        let mut found = Vec::new();
        let defs = schema.get("$defs").and_then(Json::as_object);
        let types = std::iter::once(("Thread", schema)).chain(defs.into_iter().flatten());
        for (name, ty) in types {
            found.push((name.to_owned(), ty));
            let members = ty.get("properties").and_then(Json::as_object);
            let members = members.into_iter().flatten();
            found.extend(members.map(|(member, schema)| (format!("{name}.{member}"), schema)));
        }
        found
            .into_iter()
            .map(|(place, schema)| (place, schema.get("description").and_then(Json::as_str)))
            .collect()
    }

    fn all() -> Vec<Json> {
        let profiles = [Profile::Lenient, Profile::Strict];
        let each = |profile| Version::KNOWN.map(|version| schema(&version, profile));
        profiles.into_iter().flat_map(each).flatten().collect()
    }

    #[test]
    fn every_type_and_member_is_described() {
        let schemas = all();
        assert_eq!(schemas.len(), 8);
        for schema in &schemas {
            for (place, text) in described(schema) {
                assert!(
                    text.is_some_and(|text| text.ends_with('.')),
                    "{place}: {text:?}"
                );
            }
        }
    }

    #[test]
    fn every_word_is_used() {
        let schemas = all();
        let used: Vec<_> = schemas.iter().flat_map(described).collect();
        for place in words::places() {
            assert!(used.iter().any(|(used, _)| *used == place), "{place}");
        }
    }

    #[test]
    fn every_reference_has_its_type_and_every_type_is_referred_to() {
        for schema in all() {
            let text = schema.to_text();
            let defs = schema.get("$defs").and_then(Json::as_object).unwrap();
            for name in defs.keys() {
                assert!(text.contains(&format!("\"#/$defs/{name}\"")), "{name}");
            }
            for reference in text.split("\"#/$defs/").skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(defs.contains_key(name), "{name}");
            }
        }
    }
}
