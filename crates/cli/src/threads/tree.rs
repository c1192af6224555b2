//! `threads tree`: the branches of a conversation.

use super::missing;
use crate::args::Whose;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output, clean};
use crate::store::Place;
use runtime::tree::Branch;
use serde_json::json;
use server::OpenMode;
use std::collections::BTreeMap;

pub(super) async fn tree(
    place: &Place,
    whose: &Whose,
    key: &str,
    output: &Output,
) -> Result<(), CliError> {
    let (app, tenant) = place.open(whose, OpenMode::ReadOnly)?;
    let branches = app.runtime().branches(&tenant, key).await;
    let branches = branches.map_err(|error| missing(error, key))?;
    let mut forks: BTreeMap<&str, Vec<&Branch>> = BTreeMap::new();
    let mut keys = BTreeMap::new();
    for branch in &branches {
        keys.insert(&*branch.node_id, branch.row.thread.key.as_deref());
        if let Some(parent) = &branch.parent_id {
            forks.entry(parent).or_default().push(branch);
        }
    }
    // Each with what stands before it and before what hangs on it.
    let mut next: Vec<(&Branch, String, String)> = Vec::new();
    next.extend(
        branches
            .first()
            .map(|root| (root, String::new(), String::new())),
    );
    while let Some((branch, lead, indent)) = next.pop() {
        let thread = &branch.row.thread;
        let parent = branch.parent_id.as_deref();
        output.value(&json!({
            "key": thread.key, "id": thread.id, "node": branch.node_id, "name": branch.name(),
            "parent": parent.and_then(|parent| keys.get(parent)),
            "forkedAt": thread.fork.as_ref().map(|fork| fork.seq),
            "current": branch.is_current, "status": thread.status, "seq": branch.row.tail,
        }))?;
        output.line(&format!("{lead}{}", drawn(branch)))?;
        let hanging = forks.remove(&*branch.node_id).unwrap_or_default();
        let last = hanging.len().saturating_sub(1);
        for (nth, fork) in hanging.into_iter().enumerate().rev() {
            let (line, below) = if nth == last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            next.push((fork, format!("{indent}{line}"), format!("{indent}{below}")));
        }
    }
    Ok(())
}

/// A branch on one line; the current one has a star.
fn drawn(branch: &Branch) -> String {
    let key = clean(branch.row.thread.key.as_deref().unwrap_or_default());
    let name = branch.name().map(clean);
    let name = name.map(|name| format!("  {name}")).unwrap_or_default();
    let mark = if branch.is_current { "  *" } else { "" };
    let events = branch.row.tail;
    format!("{BOLD}{key}{BOLD:#}{name}  {DIM}{events} events{DIM:#}{mark}")
}
