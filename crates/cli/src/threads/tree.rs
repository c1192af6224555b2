//! `threads tree`: the branches of a conversation.

use super::missing;
use crate::args::Whose;
use crate::client::Branch;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output, clean};
use crate::store::{Reach, StoreLocation};
use server::OpenMode;
use std::collections::BTreeMap;

pub(super) async fn tree(
    place: &StoreLocation,
    whose: &Whose,
    key: &str,
    output: &Output,
) -> Result<(), CliError> {
    let branches = match place.reach(whose, OpenMode::ReadOnly).await? {
        Reach::Server(client) => client.branches(key).await?,
        Reach::Store(app, tenant) => {
            let branches = app.runtime(&tenant).branches(&tenant, key).await;
            of_store(&branches.map_err(|error| missing(error, key))?)
        }
    };
    let mut forks: BTreeMap<&str, Vec<&Branch>> = BTreeMap::new();
    for branch in &branches {
        if let Some(parent) = &branch.parent {
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
        output.value(&branch.value())?;
        output.line(&format!("{lead}{}", drawn(branch)))?;
        let hanging = forks.remove(branch.key.as_str()).unwrap_or_default();
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

/// The branches in the store, each with the key of its parent.
fn of_store(branches: &[runtime::tree::Branch]) -> Vec<Branch> {
    let key = |branch: &runtime::tree::Branch| branch.row.thread.key.clone();
    let keys = branches
        .iter()
        .map(|branch| (&*branch.node_id, key(branch)));
    let keys: BTreeMap<&str, Option<String>> = keys.collect();
    let parent = |branch: &runtime::tree::Branch| {
        let parent = branch.parent_id.as_deref()?;
        keys.get(parent).cloned().flatten()
    };
    let branches = branches.iter();
    branches
        .map(|branch| Branch::of(branch, parent(branch)))
        .collect()
}

/// A branch on one line; the current one has a star.
fn drawn(branch: &Branch) -> String {
    let key = clean(&branch.key);
    let name = branch.name.as_deref().map(clean);
    let name = name.map(|name| format!("  {name}")).unwrap_or_default();
    let mark = if branch.current { "  *" } else { "" };
    let events = branch.seq;
    format!("{BOLD}{key}{BOLD:#}{name}  {DIM}{events} events{DIM:#}{mark}")
}
