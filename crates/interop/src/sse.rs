//! Server-sent events as every protocol here writes them. None of it allocates but what the text needs.

use std::fmt::{Display, Write as _};

/// The data of the event that ends a stream.
pub const DONE: &str = "[DONE]";
/// What ends an event.
pub const END: &str = "\n\n";
/// A comment, which shows that a stream lives.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Writes the id of the event that comes next.
pub fn write_id(id: impl Display, out: &mut String) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "id: {id}");
}

/// Begins an event of this name. Its data comes next, in one line, and then [`END`].
pub fn begin(event: &str, out: &mut String) {
    for piece in ["event: ", event, "\ndata: "] {
        out.push_str(piece);
    }
}

/// Writes an event of this name, with data of one line.
pub fn write_named(event: &str, data: impl Display, out: &mut String) {
    begin(event, out);
    let _ = write!(out, "{data}{END}");
}

/// Writes an event with this data, which may have several lines.
pub fn write_event(data: &str, out: &mut String) {
    // A reader ends lines at CR too. Neither stands bare in JSON.
    for line in data.split(['\n', '\r']) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}
