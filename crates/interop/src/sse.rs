//! Server-sent events in the form of every protocol here. Writing allocates only for the text.

use std::fmt::{Display, Write as _};

/// The data of the event that ends a stream.
pub const DONE: &str = "[DONE]";
/// The end of an event.
pub const END: &str = "\n\n";
/// A comment that keeps a stream alive.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Writes the id of the next event.
pub fn write_id(id: impl Display, out: &mut String) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "id: {id}");
}

/// Begins an event of this name. The caller then writes its data, in one line, and [`END`].
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
