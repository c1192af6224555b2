//! Parse errors, in the terms of the text's author.

/// The names of a notation's value types.
pub(crate) struct Wording {
    object: &'static str,
}

/// Of JSON.
pub(crate) const JSON: Wording = Wording {
    object: "an object",
};

/// Of TOML.
pub(crate) const TOML: Wording = Wording { object: "a table" };

const LIST: &str = "a list";

impl Wording {
    /// Rewrites a message of serde without the program's type names: the value found, and the expected
    /// one.
    pub(crate) fn of(&self, message: &str) -> String {
        let rest = ["invalid type: ", "invalid value: "]
            .iter()
            .find_map(|kind| message.strip_prefix(kind));
        match rest.and_then(|rest| rest.rsplit_once(", expected ")) {
            Some((found, expected)) => {
                let (found, expected) = (self.found(found), self.expected(expected));
                format!("this is {found}, expected {expected}")
            }
            None if message.starts_with("data did not match any variant") => {
                "this has none of the forms that it may have".to_owned()
            }
            None => message.to_owned(),
        }
    }

    fn found(&self, found: &str) -> String {
        let value = |kind: &str| {
            let value = found.strip_prefix(kind)?;
            Some(value.trim_matches('`'))
        };
        if let Some(number) = value("integer ").or_else(|| value("floating point ")) {
            return format!("the number {number}");
        }
        if let Some(text) = value("string ") {
            return format!("the text {text}");
        }
        match found {
            "map" => self.object.to_owned(),
            "sequence" => LIST.to_owned(),
            "unit value" => "null".to_owned(),
            _ => value("boolean ").unwrap_or(found).to_owned(),
        }
    }

    fn expected(&self, expected: &str) -> String {
        let is_struct = ["struct ", "internally tagged enum ", "map "]
            .iter()
            .any(|kind| expected.starts_with(kind));
        match expected {
            _ if is_struct => self.object.to_owned(),
            "a map" => self.object.to_owned(),
            "a sequence" => LIST.to_owned(),
            "a string" => "a text".to_owned(),
            "path string" => "a path".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "f32" | "f64" => "a number".to_owned(),
            other => whole_number(other).unwrap_or_else(|| other.to_owned()),
        }
    }
}

/// The range of an integer type, in words.
fn whole_number(kind: &str) -> Option<String> {
    let (kind, least) = match kind.strip_prefix("a nonzero ") {
        Some(kind) => (kind, 1),
        None => (kind, 0),
    };
    let most = match kind {
        "u8" => u32::from(u8::MAX),
        "u16" => u32::from(u16::MAX),
        "u32" => u32::MAX,
        "u64" | "u128" | "usize" => return Some(format!("a whole number, {least} or more")),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => {
            return Some("a whole number".to_owned());
        }
        _ => return None,
    };
    Some(format!("a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_and_what_is_expected_have_no_names_of_types() {
        for (message, words) in [
            (
                "invalid type: string \"x, expected y\", expected struct Tls",
                "this is the text \"x, expected y\", expected a table",
            ),
            (
                "invalid type: map, expected a sequence",
                "this is a table, expected a list",
            ),
            (
                "invalid type: integer `1`, expected a boolean",
                "this is the number 1, expected true or false",
            ),
            (
                "invalid value: integer `0`, expected a nonzero usize",
                "this is the number 0, expected a whole number, 1 or more",
            ),
            (
                "invalid value: integer `300`, expected u8",
                "this is the number 300, expected a whole number from 0 to 255",
            ),
            (
                "invalid type: floating point `1.5`, expected i64",
                "this is the number 1.5, expected a whole number",
            ),
            (
                "invalid type: boolean `true`, expected path string",
                "this is true, expected a path",
            ),
            (
                "data did not match any variant of untagged enum Retry",
                "this has none of the forms that it may have",
            ),
            ("missing field `cert`", "missing field `cert`"),
        ] {
            assert_eq!(TOML.of(message), words, "{message}");
        }
        assert_eq!(
            JSON.of("invalid type: sequence, expected struct NewMessage"),
            "this is a list, expected an object"
        );
    }
}
