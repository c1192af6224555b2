//! Addresses of links and images.

use crate::hidden::is_hidden;

/// Maximum number of characters after the host that are followed without a question.
const MAX_REST: usize = 64;

/// An address that a page may link to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// The host with its port, or the mail address.
    pub(super) host: &'a str,
    /// Whether it is one of the web, not of mail.
    pub(super) is_web: bool,
    /// Whether the host may be taken for another one.
    pub(super) is_odd: bool,
    /// Whether much follows the host, so that opening it may send data.
    pub(super) is_long: bool,
}

impl<'a> Address<'a> {
    /// Reads an address. Only `http`, `https` and `mailto` are known, and only in the form that browsers and
    /// this function read alike: browsers drop line ends and take `\` for `/`.
    pub(super) fn read(address: &'a str) -> Option<Self> {
        let is_bad = |c: char| c == '\\' || c.is_whitespace() || c.is_control() || is_hidden(c);
        if address.contains(is_bad) {
            return None;
        }
        let (scheme, rest) = address.split_once(':')?;
        let is_web = ["http", "https"]
            .iter()
            .any(|it| scheme.eq_ignore_ascii_case(it));
        let (host, after, is_odd) = if is_web {
            let rest = rest.strip_prefix("//")?;
            let (authority, after) = split(rest, &['/', '?', '#']);
            let host = authority.rsplit('@').next().unwrap_or_default();
            (
                host,
                after,
                host.len() < authority.len() || !host.bytes().all(is_host),
            )
        } else if scheme.eq_ignore_ascii_case("mailto") {
            let (host, after) = split(rest, &['?', '#']);
            (host, after, !host.is_ascii() || host.contains('%'))
        } else {
            return None;
        };
        let is_long = after.chars().nth(MAX_REST).is_some();
        (!host.is_empty()).then_some(Self {
            host,
            is_web,
            is_odd,
            is_long,
        })
    }
}

/// The text before the first of the characters, and the rest.
fn split<'a>(text: &'a str, at: &[char]) -> (&'a str, &'a str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

/// Whether browsers show the byte of a host as it is.
fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)
}

/// Whether the text of a link is its address, with or without the scheme.
pub(super) fn is_same(text: &str, address: &str) -> bool {
    let bare = address.split_once(':').map_or(address, |(_, rest)| rest);
    let bare = bare.strip_prefix("//").unwrap_or(bare);
    let short = bare.strip_suffix('/').unwrap_or(bare);
    [address, bare, short].contains(&text)
}
