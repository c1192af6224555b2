//! The order in which the calls of one response run (UAP §8.5, §8.6). Has no side effects.

use std::collections::{BTreeMap, BTreeSet};
use upp::{Tool, ToolCall, ToolCallId};

/// Why no call of a response can run; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Disorder {
    /// A call waits for a call that does not exist.
    #[error(
        "No tool was run: the call '{call}' waits for '{after}', which is no call of this response."
    )]
    UnknownCall {
        /// The call that waits.
        call: ToolCallId,
        /// The id of the missing call.
        after: ToolCallId,
    },
    /// Calls wait for each other.
    #[error("No tool was run: the calls {} wait for each other.", quoted(.calls))]
    Cycle {
        /// The calls that could never start.
        calls: Vec<ToolCallId>,
    },
}

fn quoted(calls: &[ToolCallId]) -> String {
    let ids: Vec<String> = calls.iter().map(|id| format!("'{id}'")).collect();
    ids.join(", ")
}

/// For each call, the positions of the calls that must have ended before it starts.
///
/// A call waits for the calls it names in `after`, for calls of the tools its own tool depends on,
/// and for the first call with its id. Calls of sequential tools run one after the other. Only
/// calls that a sequential call needs may start before it has ended. A failed call counts as ended.
pub(crate) fn order<'t>(
    calls: &[ToolCall],
    tool: impl Fn(&str) -> Option<&'t Tool>,
) -> Result<Vec<BTreeSet<usize>>, Disorder> {
    // A single call that names no other has nothing to wait for.
    if let [call] = calls
        && call.after.is_empty()
        && tool(&call.tool_name).is_none_or(|tool| tool.depends_on.is_empty())
    {
        return Ok(vec![BTreeSet::new()]);
    }
    let tools: Vec<Option<&Tool>> = calls.iter().map(|call| tool(&call.tool_name)).collect();
    let mut needs = declared(calls, &tools)?;
    let sorted = topological(&needs).map_err(|cycle| {
        let stuck = cycle.into_iter().filter_map(|at| calls.get(at));
        Disorder::Cycle {
            calls: stuck.map(|call| call.tool_call_id.clone()).collect(),
        }
    })?;
    let barriers: Vec<usize> = sorted
        .into_iter()
        .filter(|at| {
            tools
                .get(*at)
                .copied()
                .flatten()
                .is_some_and(|tool| tool.sequential)
        })
        .collect();
    add_barriers(&mut needs, &barriers);
    Ok(needs)
}

fn declared(calls: &[ToolCall], tools: &[Option<&Tool>]) -> Result<Vec<BTreeSet<usize>>, Disorder> {
    let mut by_id: BTreeMap<&ToolCallId, usize> = BTreeMap::new();
    let mut by_tool: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        by_id.entry(&call.tool_call_id).or_insert(at);
        by_tool.entry(&call.tool_name).or_default().push(at);
    }
    let mut needs = Vec::with_capacity(calls.len());
    for (call, tool) in calls.iter().zip(tools) {
        let mut indices = BTreeSet::new();
        // Results are told apart by their order alone where an id repeats.
        indices.extend(
            by_id
                .get(&call.tool_call_id)
                .filter(|first| **first != needs.len()),
        );
        for after in &call.after {
            let at = by_id.get(after).ok_or_else(|| Disorder::UnknownCall {
                call: call.tool_call_id.clone(),
                after: after.clone(),
            })?;
            indices.insert(*at);
        }
        for name in tool.iter().flat_map(|tool| &tool.depends_on) {
            indices.extend(by_tool.get(name.as_str()).into_iter().flatten());
        }
        needs.push(indices);
    }
    Ok(needs)
}

/// Cuts the calls into phases, each of which ends with a sequential call: first what that call
/// needs, then the call itself. Nothing of a later phase starts before it has ended.
fn add_barriers(needs: &mut [BTreeSet<usize>], barriers: &[usize]) {
    let mut unplaced: BTreeSet<usize> = (0..needs.len()).collect();
    let mut previous: Option<usize> = None;
    for barrier in barriers {
        let mut open = vec![*barrier];
        while let Some(at) = open.pop() {
            if !unplaced.remove(&at) {
                continue;
            }
            if let Some(own) = needs.get_mut(at) {
                open.extend(own.iter());
                own.extend(previous);
            }
        }
        previous = Some(*barrier);
    }
    for at in unplaced {
        if let Some(own) = needs.get_mut(at) {
            own.extend(previous);
        }
    }
}

/// Sorts the positions so that each comes after the ones it needs, otherwise in order. Fails with
/// the positions in or behind a cycle.
pub(crate) fn topological(needs: &[BTreeSet<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let (mut n_open, needed_by) = inverted(needs);
    let mut ready: BTreeSet<usize> = (0..needs.len())
        .filter(|at| n_open.get(*at) == Some(&0))
        .collect();
    let mut sorted = Vec::with_capacity(needs.len());
    while let Some(at) = ready.pop_first() {
        sorted.push(at);
        for next in needed_by.get(at).into_iter().flatten() {
            if release(&mut n_open, *next) {
                ready.insert(*next);
            }
        }
    }
    if sorted.len() == needs.len() {
        return Ok(sorted);
    }
    let sorted: BTreeSet<usize> = sorted.into_iter().collect();
    Err((0..needs.len()).filter(|at| !sorted.contains(at)).collect())
}

/// For each position, the number of positions it waits for, and the positions that wait for it.
pub(crate) fn inverted(needs: &[BTreeSet<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (at, own) in needs.iter().enumerate() {
        for need in own {
            if let Some(waiting) = needed_by.get_mut(*need) {
                waiting.push(at);
            }
        }
    }
    (needs.iter().map(BTreeSet::len).collect(), needed_by)
}

/// Counts one need of `at` as met; returns whether it was the last.
fn release(n_open: &mut [usize], at: usize) -> bool {
    let Some(n) = n_open.get_mut(at) else {
        return false;
    };
    *n = n.saturating_sub(1);
    *n == 0
}

/// The positions for which `at` was the last one they waited for.
pub(crate) fn freed(n_open: &mut [usize], needed_by: &[Vec<usize>], at: usize) -> Vec<usize> {
    let waiting = needed_by.get(at).into_iter().flatten().copied();
    waiting.filter(|next| release(n_open, *next)).collect()
}

#[cfg(test)]
mod tests;
