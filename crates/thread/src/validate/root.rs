//! The root, the agent registry and the relationships.

use super::fields::{self, Field, Shape, expected, optional, required};
use super::{Report, Rule};
use crate::document::{Thread, Version, items};
use crate::json::{Json, Object};
use crate::path::Path;

pub(crate) const ROOT: &[Field] = &[
    required("version", Shape::Text),
    required("thread_id", Shape::Uuid),
    required("created_at", Shape::Timestamp),
    required("updated_at", Shape::Timestamp),
    optional("title", Shape::Text),
    optional("metadata", Shape::Object),
    required("agents", Shape::Object),
];

pub(crate) const AGENT: &[Field] = &[
    required("agent_id", Shape::Uuid),
    expected("agent_name", Shape::Text),
    optional("model_name", Shape::Text),
    optional("provider_name", Shape::Text),
    expected("created_at", Shape::Timestamp),
    optional("config_ref", Shape::Text),
];

pub(crate) const LINK: &[Field] = &[
    required("thread_id", Shape::Text),
    required("relation", Shape::Text),
    optional("metadata", Shape::Object),
];

/// The root members since 2.0.0.
pub(crate) const TURNS: &[Field] = &[required("turns", Shape::Array)];

/// The root members since 0.0.3.
pub(crate) const RELATIONSHIPS: &[Field] = &[optional("relationships", Shape::Object)];

pub(crate) const LINKS: &[Field] = &[optional("links", Shape::Array)];

/// Checks everything of a document but its turns.
pub(super) fn check(report: &mut Report<'_>, thread: &Thread) {
    let root = thread.root();
    fields::check(report, Path::ROOT, root, ROOT);
    check_version(report, root);
    if report.version != Version::V1_0_0 {
        fields::check(report, Path::ROOT, root, TURNS);
    }
    let agents = root.get("agents").and_then(Json::as_object);
    let path = Path::ROOT.key("agents");
    for (key, config) in agents.into_iter().flatten() {
        check_agent(report, path.key(key), key, config);
    }
    if report.version >= Version::V0_0_3 {
        check_relationships(report, root);
    }
}

fn check_version(report: &mut Report<'_>, root: &Object) {
    if root.get_str("version").is_none() {
        return;
    }
    let message = match &report.version {
        Version::V2_0_0 | Version::V0_0_3 | Version::V0_0_4 => return,
        Version::V1_0_0 => "version 1.0.0 is only read; upgrade it to write it".to_owned(),
        Version::Other(version) => format!("version {version:?} is not known"),
    };
    report.add(Rule::Version, Path::ROOT.key("version"), message);
}

fn check_agent(report: &mut Report<'_>, path: Path<'_>, key: &str, config: &Json) {
    let Some(config) = fields::object(report, path, config) else {
        return;
    };
    fields::check(report, path, config, AGENT);
    if let Some(id) = config.get_str("agent_id").filter(|id| *id != key) {
        let message = format!("the agent {id:?} is registered as {key:?}");
        report.add(Rule::AgentKey, path.key("agent_id"), message);
    }
}

fn check_relationships(report: &mut Report<'_>, root: &Object) {
    fields::check(report, Path::ROOT, root, RELATIONSHIPS);
    let Some(relationships) = root.get("relationships").and_then(Json::as_object) else {
        return;
    };
    let path = Path::ROOT.key("relationships");
    fields::check(report, path, relationships, LINKS);
    let path = path.key("links");
    for (place, link) in items(relationships, "links").iter().enumerate() {
        let path = path.index(place);
        let Some(link) = fields::object(report, path, link) else {
            continue;
        };
        fields::check(report, path, link, LINK);
        if let Some(id) = link.get_str("thread_id") {
            fields::uuid(report, Rule::LinkThreadId, path.key("thread_id"), id);
        }
    }
}
