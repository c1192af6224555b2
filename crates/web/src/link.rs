//! Links to other pages.

use maud::{Markup, html};

/// A key as a segment of a path.
pub fn path_segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = std::fmt::Write::write_fmt(&mut out, format_args!("%{byte:02X}"));
        }
    }
    out
}

/// The address of a file in a part of a message.
pub(crate) fn item_file(thread_key: &str, item: &str, part: usize) -> String {
    let (key, item) = (path_segment(thread_key), path_segment(item));
    format!("/ui/file?thread={key}&item={item}&part={part}")
}

/// The address of an answer's text as Markdown.
pub(crate) fn answer_text<'e>(
    thread_key: &str,
    executions: impl Iterator<Item = &'e str>,
) -> String {
    let key = path_segment(thread_key);
    let ids: Vec<String> = executions.map(path_segment).collect();
    format!("/ui/text?thread={key}&executions={}", ids.join(","))
}

/// The address of a file in a part of an answer's step.
pub(crate) fn step_file(thread_key: &str, (execution, step): (&str, &str), part: u32) -> String {
    let (key, execution) = (path_segment(thread_key), path_segment(execution));
    let step = path_segment(step);
    format!("/ui/file?thread={key}&execution={execution}&step={step}&part={part}")
}

/// The link to the versions of a message or an answer.
pub(crate) fn versions_link(thread_key: &str, item: &str) -> Markup {
    let (key, item) = (path_segment(thread_key), path_segment(item));
    html! { a class="quiet" href={ "/ui/versions?thread=" (key) "&item=" (item) } { "Versions" } }
}

/// The path of a thread in the chat.
pub(crate) fn chat_path(thread_key: &str) -> String {
    format!("/chat/{}", path_segment(thread_key))
}

/// The path of a thread as it was after an event.
pub(crate) fn at_path(thread_key: &str, seq: u64) -> String {
    format!("{}?at={seq}", chat_path(thread_key))
}

/// The path of a run in the console.
pub(crate) fn run_path(thread_key: &str, execution: &str) -> String {
    let (key, execution) = (path_segment(thread_key), path_segment(execution));
    format!("/console/t/{key}/run/{execution}")
}

/// The path of an event in the console, in its surroundings.
pub(crate) fn event_path(thread_key: &str, seq: u64) -> String {
    let (key, after) = (path_segment(thread_key), seq.saturating_sub(20));
    format!("/console/t/{key}/events?view=full&after={after}#e-{seq}")
}
