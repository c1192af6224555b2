//! Code samples with texts of others: each text becomes a literal of its language.

use std::fmt::Write as _;

/// A text as a literal of JSON, JavaScript and Python. It has no invisible characters.
pub(crate) fn literal(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if crate::hidden::is_hidden(c) {
            // All of these characters have four digits. Writing to a string can't fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// A text as a word of a shell, such as bash or zsh. It has no invisible characters.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(crate::hidden::is_hidden) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if crate::hidden::is_hidden(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A request with `curl`.
#[derive(Debug)]
pub(crate) struct CurlSample<'a> {
    /// The address.
    pub(crate) url: &'a str,
    /// Whether the response is a stream.
    pub(crate) is_stream: bool,
    /// Whether the server needs a key.
    pub(crate) needs_key: bool,
    /// Further headers.
    pub(crate) headers: &'a [&'a str],
    /// The JSON body of a `POST`; none for a `GET`.
    pub(crate) body: Option<&'a str>,
}

impl CurlSample<'_> {
    /// The command.
    pub(crate) fn text(&self) -> String {
        let stream = if self.is_stream { "-N " } else { "" };
        let mut lines = vec![format!("curl {stream}{}", shell_word(self.url))];
        if self.needs_key {
            lines.push("-H \"authorization: Bearer $LOOMLINE_KEY\"".to_owned());
        }
        let headers = self
            .headers
            .iter()
            .map(|it| format!("-H {}", shell_word(it)));
        lines.extend(headers);
        if let Some(body) = self.body {
            lines.push("-H 'content-type: application/json'".to_owned());
            lines.push(format!("-d {}", shell_word(body)));
        }
        lines.join(" \\\n  ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_has_the_text_and_no_invisible_characters() {
        let text = "a\"b\\c\n\u{202e}</script>é'";
        let literal = literal(text);
        assert_eq!(literal, r#""a\"b\\c\n\u202e</script>é'""#);
        assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), text);
    }

    #[test]
    fn a_word_of_a_shell_is_quoted_if_it_needs_quotes() {
        for (text, word) in [
            ("support-42", "support-42"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("a\u{202e}'b", r"$'a\u202e\'b'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn a_request_has_a_key_only_if_the_server_needs_one() {
        let mut sample = CurlSample {
            url: "http://localhost/a",
            is_stream: true,
            needs_key: false,
            headers: &["A2A-Version: 1.0"],
            body: Some(r#"{"a":"b"}"#),
        };
        let expected = "curl -N http://localhost/a \\\n  -H 'A2A-Version: 1.0' \\\n  \
             -H 'content-type: application/json' \\\n  -d '{\"a\":\"b\"}'";
        assert_eq!(sample.text(), expected);
        sample.needs_key = true;
        assert!(
            sample
                .text()
                .contains("\"authorization: Bearer $LOOMLINE_KEY\"")
        );
    }
}
