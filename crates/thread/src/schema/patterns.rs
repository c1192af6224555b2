//! The formats of strings, as regular expressions of every dialect (ECMA 262, RE2, Rust).

use crate::validate::Profile;
use crate::validate::uri::SCHEMES;

/// A UUID in its hyphenated form.
pub(super) const UUID: &str =
    "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$";

/// The hash of a content in an external store.
pub(super) const HASH: &str = "^sha256:[0-9A-Fa-f]{64}$";

/// An absolute URI: a scheme, and then only characters of URIs (RFC 3986).
pub(super) const URI: &str =
    "^[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~:/?#@!$&'()*+,;=\\[\\]-]|%[0-9A-Fa-f]{2})+$";

/// A URI whose scheme requires a host or a bucket.
pub(super) const STORE: &str = "^([Hh][Tt][Tt][Pp][Ss]?|[Ss]3|[Gg][Ss]|[Aa][Zz][Uu][Rr][Ee]):";

/// A URI with a host or a bucket.
pub(super) const AUTHORITY: &str = "^[^:]*://[^/?#]";

/// An instant in ISO 8601, extended or basic; strict, with its offset. The days of a month are not
/// counted.
pub(super) fn timestamp(profile: Profile) -> String {
    let second = "([0-5][0-9]|60)([.,][0-9]{1,9})?";
    let date = "([+-]00)?[0-9]{4}(-(0[1-9]|1[0-2])-|(0[1-9]|1[0-2]))(0[1-9]|[12][0-9]|3[01])";
    let minute = "[0-5][0-9]";
    let time = format!("([01][0-9]|2[0-3])(:{minute}(:{second})?|{minute}({second})?)?");
    let offset = format!("(Z|[+-]([01][0-9]|2[0-5])(:{minute}(:{minute})?|{minute}({minute})?)?)");
    let may = match profile {
        Profile::Lenient => "?",
        Profile::Strict => "",
    };
    format!("^{date}T{time}{offset}{may}$")
}

/// A URI of a scheme that is recognised, in either case.
pub(super) fn recognised() -> String {
    let either = |char: char| {
        if char.is_ascii_alphabetic() {
            format!("[{}{char}]", char.to_ascii_uppercase())
        } else {
            char.to_string()
        }
    };
    let schemes = SCHEMES.map(|scheme| scheme.chars().map(either).collect::<String>());
    format!("^({}):", schemes.join("|"))
}
