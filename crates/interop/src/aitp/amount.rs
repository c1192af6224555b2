//! Amounts of money: decimals as text, compared exactly.

use serde_json::Value;

/// A decimal without a sign: `99.90` and `099.9` are equal, and no digit is ever rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount<'a> {
    n_digits: usize,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Amount<'a> {
    /// Reads `digits` or `digits.digits`.
    pub fn read(text: &'a str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        Some(Self {
            n_digits: whole.len(),
            whole,
            fraction: fraction.trim_end_matches('0'),
        })
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }
}

/// The text of an amount: a string, or a number as in NEAR's dialect.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").map_or(text.clone(), str::to_owned))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether two texts are the same amount; texts that are none are equal only letter by letter.
pub fn is_same_amount(a: &str, b: &str) -> bool {
    match (Amount::read(a), Amount::read(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn amounts_are_compared_by_value_and_exactly() {
        assert!(is_same_amount("99.90", "099.9"));
        assert!(is_same_amount("1", "1.000"));
        assert!(!is_same_amount("0.1", "0.10000000000000000001"));
        assert!(!is_same_amount("9007199254740993", "9007199254740992"));
        assert!(Amount::read("0.00").is_some_and(Amount::is_zero));
        for wrong in ["", ".5", "5.", "-1", "1e3", "1,5", "１"] {
            assert_eq!(Amount::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_is_read_as_it_is_written() {
        assert_eq!(text_of(&json!(199.5)).as_deref(), Some("199.5"));
        assert_eq!(text_of(&json!(20.0)).as_deref(), Some("20"));
        assert_eq!(text_of(&json!(20)).as_deref(), Some("20"));
        assert_eq!(text_of(&json!(null)), None);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_numbers(a in 0u64..5000, b in 0u64..5000, zeros in 0usize..3) {
            let text = |n: u64| format!("{}{}.{:02}{}", "0".repeat(zeros), n / 100, n % 100, "0".repeat(zeros));
            let (first, second) = (text(a), text(b));
            prop_assert_eq!(Amount::read(&first).cmp(&Amount::read(&second)), a.cmp(&b));
        }
    }
}
