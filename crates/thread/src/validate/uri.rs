//! The form of a URI (RFC 3986), as far as a reference to content needs it.

/// The schemes that 0.0.3 recognises, and the one this crate documents and writes.
pub(crate) const SCHEMES: [&str; 6] =
    ["https", "s3", "gs", "azure", "file", crate::content::SCHEME];

/// The scheme of an absolute URI, if `text` is one.
pub(super) fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let named = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (named && !rest.is_empty() && is_well_formed(rest) && has_authority(scheme, rest))
        .then_some(scheme)
}

/// Only characters of URIs, each `%` with two hexadecimal digits.
fn is_well_formed(rest: &str) -> bool {
    let legal =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte);
    let mut bytes = rest.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        if byte == b'%' {
            if !(hex(bytes.next()) && hex(bytes.next())) {
                return false;
            }
        } else if !legal(byte) {
            return false;
        }
    }
    true
}

/// The schemes of stores name a host or a bucket.
fn has_authority(scheme: &str, rest: &str) -> bool {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "http" | "s3" | "gs" | "azure" => {
            let authority = rest
                .strip_prefix("//")
                .and_then(|rest| rest.split(['/', '?', '#']).next());
            authority.is_some_and(|authority| !authority.is_empty())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_scheme_and_only_legal_characters() {
        assert_eq!(scheme("s3://bucket/key%20x"), Some("s3"));
        assert_eq!(scheme("file:///var/data"), Some("file"));
        assert_eq!(scheme("urn:loom:1"), Some("urn"));
        for bad in [
            "",
            "bucket/key",
            "s3:",
            "https:///x",
            "s3://a b",
            "s3://a%2",
            "1s://a",
            "://a",
        ] {
            assert_eq!(scheme(bad), None, "{bad}");
        }
    }
}
