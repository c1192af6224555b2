//! The ids of elements that patches name.

/// The element before which new messages are added.
pub const END_OF_LOG: &str = "end";
/// The line that names the state of the thread.
pub const THREAD_STATE: &str = "state";
/// The title of the thread.
pub const TITLE: &str = "title";
/// The list of the requests that wait for the reader.
pub const WAITING: &str = "waiting";

/// The number of calls and requests that wait, in the menu.
pub const INBOX_COUNT: &str = "inbox-count";
/// The line with the number of entries, in the inbox.
pub const INBOX_STATE: &str = "inbox-state";
/// The element before which new entries of the inbox are added.
pub const INBOX_END: &str = "inbox-end";
/// The list of threads at the side.
pub const RAIL_THREADS: &str = "rail-threads";

/// The element of an entry of the inbox.
pub(crate) fn inbox_entry(id: &str) -> String {
    format!("w-{id}")
}

/// The element of a message: `id` is that of its item, or of its first execution.
pub(crate) fn message(id: &str) -> String {
    format!("m-{id}")
}

/// The element of a step.
pub(crate) fn step(id: &str) -> String {
    format!("s-{id}")
}

/// The element of a block in a run.
pub(crate) fn block(run: &str, block: &str) -> String {
    format!("b-{run}-{block}")
}

/// The element of a call in a run.
pub(crate) fn call(run: &str, tool_call_id: &str) -> String {
    format!("c-{run}-{tool_call_id}")
}

/// The element of a request: `anchor` is the step or item with its message, `request` its id.
pub(crate) fn request(anchor: &str, request: &str) -> String {
    let mut id = format!("r-{anchor}-");
    for byte in request.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            id.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = std::fmt::Write::write_fmt(&mut id, format_args!("_{byte:02x}"));
        }
    }
    id
}

/// The element in `element` with this role.
pub(crate) fn within(element: &str, role: &str) -> String {
    format!("{element}-{role}")
}
