//! Numbers as they were spelled.

/// A JSON number that keeps its source text: `1.0`, `1e2`, `-0` and integers of any size.
///
/// Two numbers are equal when they are spelled alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(Box<str>);

impl Number {
    /// Reads a number, if `text` is exactly one by the grammar of RFC 8259.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_number(text.as_bytes()).then(|| Self(text.into()))
    }

    /// Writes a double in the shortest spelling that reads back the same, if it is finite.
    #[must_use]
    pub fn from_f64(double: f64) -> Option<Self> {
        let number = serde_json::Number::from_f64(double)?;
        Some(Self(number.to_string().into()))
    }

    /// Makes a number from a spelling that a JSON parser has accepted.
    pub(super) fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// The spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a signed integer, if it is spelled as one and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The value as an unsigned integer, if it is spelled as one and fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// The nearest double, if it is finite.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.0
            .parse::<f64>()
            .ok()
            .filter(|double| double.is_finite())
    }

    /// Whether the number is spelled as an integer, without fraction or exponent.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        !self.0.contains(['.', 'e', 'E'])
    }

    /// Whether a double carries the number, as I-JSON asks (RFC 7493 §2.2): integers up to
    /// 2^53 - 1 either side of zero, other numbers finite and of at most 17 significant digits.
    #[must_use]
    pub fn is_i_json(&self) -> bool {
        const LARGEST: u64 = (1 << 53) - 1;
        if self.is_integer() {
            return self
                .as_i64()
                .is_some_and(|integer| integer.unsigned_abs() <= LARGEST);
        }
        self.as_f64().is_some() && self.significant_digits() <= 17
    }

    /// Counts digits between the first and the last that is not zero, exponent aside.
    fn significant_digits(&self) -> usize {
        let mantissa = self.0.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').len()
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<i64> for Number {
    fn from(integer: i64) -> Self {
        Self(integer.to_string().into())
    }
}

impl From<u64> for Number {
    fn from(integer: u64) -> Self {
        Self(integer.to_string().into())
    }
}

/// RFC 8259 §6: minus, integer part, fraction, exponent.
fn is_number(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let Some((whole, rest)) = digits(rest) else {
        return false;
    };
    if whole.len() > 1 && whole.starts_with(b"0") {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => match digits(fraction) {
            None => return false,
            Some((_, rest)) => rest,
        },
    };
    let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) else {
        return rest.is_empty();
    };
    let unsigned = exponent
        .strip_prefix(b"+")
        .or_else(|| exponent.strip_prefix(b"-"));
    digits(unsigned.unwrap_or(exponent)).is_some_and(|(_, rest)| rest.is_empty())
}

/// Splits one or more leading digits off.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    if end == 0 {
        None
    } else {
        text.split_at_checked(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_grammar_of_json_numbers_is_taken() {
        for good in [
            "0",
            "-0",
            "1.0",
            "1e2",
            "1E+2",
            "-0.5e-3",
            "12345678901234567890123",
        ] {
            assert_eq!(
                Number::parse(good).map(|n| n.to_string()),
                Some(good.to_owned())
            );
        }
        for bad in [
            "", "-", "01", "1.", ".5", "1e", "+1", "NaN", "Infinity", "1 ", "0x1",
        ] {
            assert_eq!(Number::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_that_no_double_carries_are_not_i_json() {
        let i_json = |text| Number::parse(text).unwrap().is_i_json();
        assert!(i_json("9007199254740991") && i_json("-9007199254740991") && i_json("0.1"));
        assert!(!i_json("9007199254740992") && !i_json("12345678901234567890123"));
        assert!(!i_json("1e400") && !i_json("3.141592653589793238"));
    }
}
