//! URIs of threads.

use std::fmt::Write as _;

/// The scheme of every URI.
const SCHEME: &str = "thread://";

/// The form in which a thread is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The `ThreadProtocol` document.
    Document,
    /// The messages, as the native API has them.
    Messages,
    /// The conversation as plain text.
    Text,
}

impl View {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Document, Self::Messages, Self::Text];

    /// The part of the URI after the thread's key.
    const fn path(self) -> &'static str {
        match self {
            Self::Document => "",
            Self::Messages => "/messages",
            Self::Text => "/text",
        }
    }

    /// The URI template (RFC 6570).
    pub fn template(self) -> String {
        format!("{SCHEME}{{key}}{}", self.path())
    }

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Document | Self::Messages => "application/json",
            Self::Text => "text/plain",
        }
    }
}

/// A thread, and how it is read.
///
/// ```
/// use loomline_interop::mcp::{Resource, View};
///
/// let resource = Resource { key: "orders/7".into(), view: View::Text };
/// assert_eq!(resource.uri(), "thread://orders%2F7/text");
/// assert_eq!(Resource::read("thread://orders%2F7/text"), Some(resource));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The thread's key.
    pub key: String,
    /// The form in which the thread is read.
    pub view: View,
}

impl Resource {
    /// The document of a thread.
    pub fn document(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            view: View::Document,
        }
    }

    /// Its URI: all but the unreserved characters of the key are percent-encoded (RFC 3986).
    pub fn uri(&self) -> String {
        let mut uri = SCHEME.to_owned();
        for byte in self.key.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                uri.push(char::from(byte));
            } else {
                // Writing to a string can't fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
        uri.push_str(self.view.path());
        uri
    }

    /// Reads a URI; `None` if it names no thread. URI libraries add a slash if there is no path.
    pub fn read(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (key, path) = match rest.split_once('/') {
            None | Some((_, "")) => (rest.trim_end_matches('/'), ""),
            Some((key, _)) => (key, rest.get(key.len()..)?),
        };
        let view = View::ALL.into_iter().find(|view| view.path() == path)?;
        let key = decoded(key).filter(|key| !key.is_empty())?;
        Some(Self { key, view })
    }
}

/// A text without its percent-encoding; `None` if that is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok();
            let digits = digits.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            u8::from_str_radix(digits, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back_from_its_uri_in_every_view() {
        for key in [
            "t",
            "Ärger & mehr?#",
            "a/b",
            "user@host:80",
            "100%",
            "%41",
            "..x",
            "\u{1f600}",
        ] {
            for view in View::ALL {
                let resource = Resource {
                    key: key.into(),
                    view,
                };
                let uri = resource.uri();
                assert!(uri.is_ascii(), "{uri}");
                assert_eq!(Resource::read(&uri), Some(resource), "{uri}");
            }
        }
    }

    #[test]
    fn a_slash_where_there_is_no_path_changes_nothing() {
        assert_eq!(Resource::read("thread://t/"), Some(Resource::document("t")));
    }

    #[test]
    fn what_names_no_thread_is_no_resource() {
        for uri in [
            "",
            "thread://",
            "thread:///",
            "thread:///text",
            "thread://t/other",
            "thread://t/text/",
            "thread://%4",
            "thread://%+1",
            "thread://%ff",
            "file://t",
            "thread:t",
        ] {
            assert_eq!(Resource::read(uri), None, "{uri}");
        }
    }
}
