//! Where one run ends and the next begins.

use super::message::Draft;

/// One run: the request with its prompt, if a user began it, and what followed.
pub(super) struct Run<'a> {
    pub(super) prompt: Option<Draft<'a>>,
    pub(super) messages: Vec<Draft<'a>>,
}

/// Cuts a history into runs.
///
/// A run begins where the `run_id` changes, and, where none is given, at a prompt that answers no
/// call. Requests that the library merged have no `run_id` and stay with the run before them.
pub(super) fn runs(drafts: Vec<Draft<'_>>) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut current: Option<&str> = None;
    for draft in drafts {
        if draft.is_void {
            continue;
        }
        let run_id = draft.text("run_id");
        let other = run_id.is_some() && run_id != current;
        let prompted = draft.prompts() && (run_id.is_none() || current.is_none());
        let begins = other || (prompted && !draft.answers());
        if run_id.is_some() {
            current = run_id;
        } else if begins {
            current = None;
        }
        match runs.last_mut().filter(|_| !begins) {
            Some(run) => run.messages.push(draft),
            None if draft.prompts() => runs.push(Run {
                prompt: Some(draft),
                messages: Vec::new(),
            }),
            None => runs.push(Run {
                prompt: None,
                messages: vec![draft],
            }),
        }
    }
    runs
}
