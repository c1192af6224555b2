//! The form of base64 (RFC 4648), as far as it can be checked without decoding.

use super::{Report, Rule};
use crate::json::Object;
use crate::path::Path;

/// Reports a member of `holder` whose text is not base64.
pub(super) fn check(report: &mut Report<'_>, path: Path<'_>, holder: &Object, name: &str) {
    if holder.get_str(name).is_some_and(|text| !is_base64(text)) {
        let message = format!("`{name}` is not base64");
        report.add(Rule::Base64, path.key(name), message);
    }
}

/// Whether text is base64 in the standard or the URL-safe alphabet, with or without padding.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let n_padding = text.len() - digits.len();
    let is_whole = match digits.len() % 4 {
        0 => n_padding == 0,
        2 => n_padding == 0 || n_padding == 2,
        3 => n_padding <= 1,
        _ => false,
    };
    let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    is_whole && digits.bytes().all(in_alphabet)
}

#[cfg(test)]
mod tests {
    use super::is_base64;

    #[test]
    fn base64_is_read_in_both_alphabets_with_padding_or_without() {
        for good in ["", "YQ==", "YQ", "YWI=", "YWI", "YWJj", "-_-_", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in [
            "Y",
            "YQ=",
            "YWJj=",
            "Y===",
            "YW Jj",
            "Y=Q=",
            "YWJ\u{e9}",
            "####",
        ] {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
