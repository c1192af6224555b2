//! What stands behind the ids of items.

use crate::ids::{COMPACTION, FUNCTION_CALL, FUNCTION_OUTPUT, MESSAGE, REASONING, STEP};

/// What the ids of items beyond the specification begin with, before those of their steps.
const EXTENSIONS: [&str; 2] = ["apr_", "evt_"];
/// The ids that the id of a listed item may be made of, the likelier first: an item's or a step's.
pub fn named_by(id: &str) -> Vec<String> {
    let forms = [
        MESSAGE,
        REASONING,
        FUNCTION_CALL,
        FUNCTION_OUTPUT,
        COMPACTION,
        STEP,
    ];
    let step = EXTENSIONS
        .iter()
        .find_map(|prefix| Some(format!("{}{}", STEP.prefix(), id.strip_prefix(prefix)?)));
    let id = step.as_deref().unwrap_or(id);
    let form = forms.into_iter().find(|form| id.starts_with(form.prefix()));
    let parent = id.rsplit_once('_').map(|(parent, _)| parent);
    let read = |id: &str| form.map_or(id.to_owned(), |form| form.read(id).into_owned());
    // What has no prefix is an id from outside.
    let parent = parent.filter(|parent| form.is_some_and(|it| parent.starts_with(it.prefix())));
    let mut names: Vec<String> = parent.into_iter().map(read).collect();
    names.push(read(id));
    names
}
