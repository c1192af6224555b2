//! Whether a value can stand in a field.

use crate::aitp::form::{Field, FieldType};

/// The expected form, if a value does not fit its field. An empty value fits every field.
pub(super) fn wrong_value(field: &Field, value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return None;
    }
    let (fits, expected) = match field.field_type {
        FieldType::Text | FieldType::Textarea | FieldType::Combobox => return None,
        FieldType::Number => (is_number(value), "a number"),
        FieldType::Email => (is_email(value), "an address of e-mail"),
        FieldType::Tel => (is_telephone(value), "a telephone number"),
        FieldType::Select => {
            let offered = field.options.iter().any(|option| option.value == value);
            (offered, "one of the options")
        }
    };
    (!fits).then_some(expected)
}

fn is_number(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(plain) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_email(text: &str) -> bool {
    let plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    text.split_once('@').is_some_and(|(local, domain)| {
        plain(local) && plain(domain) && !domain.contains('@') && domain.split('.').all(label)
    })
}

fn is_telephone(text: &str) -> bool {
    let n_digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = |it: char| it.is_ascii_digit() || " +-()./#*x".contains(it);
    (3..=20).contains(&n_digits) && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_plausible() {
        for email in ["a@b", "a.b+c@d.example", "ä@ö.example"] {
            assert!(is_email(email), "{email}");
        }
        for wrong in ["a", "@b", "a@", "a@b@c", "a b@c", "a@b..c", "a@-b", "a@.b"] {
            assert!(!is_email(wrong), "{wrong}");
        }
        assert!(is_telephone("+1 (555) 123-4567") && is_telephone("110"));
        assert!(!is_telephone("call me") && !is_telephone("12") && !is_telephone("+"));
        assert!(is_number("1e3") && is_number("-0.5") && !is_number("inf") && !is_number("1,5"));
    }
}
