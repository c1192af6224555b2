//! Markdown as HTML, whole or while it is written.
//!
//! The text comes from models, tools and other people. The writer knows a constant set of elements and
//! attributes and escapes the rest, so raw HTML is shown as text. Nothing in the output loads anything.

mod address;
mod code;
mod stream;
mod text;
mod writer;

#[cfg(test)]
mod tests;

pub use stream::MarkdownStream;

/// The host of an address of the web that a page may link to.
pub(crate) fn web_host(address: &str) -> Option<&str> {
    let address = address::Address::read(address).filter(|it| it.is_web)?;
    Some(address.host)
}

/// The HTML of a whole Markdown text. `base` is the level of the heading above it: the text's own headings
/// begin one level below and never skip one.
pub fn render(source: &str, base: u8) -> String {
    writer::write(source, base, writer::Headings::default()).html
}
