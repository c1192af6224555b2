//! Integers beyond the precision of a double, compared by all digits.
//!
//! The canonical form writes every number as the nearest double, so different 64-bit identifiers
//! can be equal there. For users they are different.

use crate::canonical::canonical_json;
use crate::json::{Json, Number, Object};
use crate::path::Path;
use std::collections::BTreeMap;

/// From here on not every integer is a double.
const LARGE: f64 = 9_007_199_254_740_992.0;

/// The large integers of an object, by their places.
pub(super) fn large_integers(root: &Object) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (key, member) in root {
        collect(Path::ROOT.key(key), member, &mut found);
    }
    found
}

fn collect(path: Path<'_>, json: &Json, found: &mut BTreeMap<String, String>) {
    match json {
        Json::Number(number) => {
            found.extend(large(number).map(|exact| (path.to_pointer(), exact)));
        }
        Json::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                collect(path.index(place), item, found);
            }
        }
        Json::Object(object) => {
            for (key, member) in object {
                collect(path.key(key), member, found);
            }
        }
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// Whether two values are the same number, spelled in two ways.
pub(super) fn is_same_number(from: &Json, to: &Json) -> bool {
    let (Some(one), Some(other)) = (from.as_number(), to.as_number()) else {
        return false;
    };
    let doubles = (canonical_json(from), canonical_json(to));
    large(one) == large(other) && matches!(doubles, (Ok(from), Ok(to)) if from == to)
}

/// One spelling for each integer of 2^53 and more, positive or negative; `None` for other numbers.
fn large(number: &Number) -> Option<String> {
    if number.as_f64()?.abs() < LARGE {
        return None;
    }
    let (sign, text) = match number.as_str().strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number.as_str()),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let after_point = i64::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?;
    let exponent = exponent.checked_add(zeros)?.checked_sub(after_point)?;
    let significant = significant.trim_start_matches('0');
    (exponent >= 0).then(|| format!("{sign}{significant}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        is_same_number(&Json::parse(one).unwrap(), &Json::parse(other).unwrap())
    }

    #[test]
    fn large_integers_are_the_same_only_to_the_last_digit() {
        assert!(!same("9007199254740993", "9007199254740992"));
        assert!(!same("9007199254740993", "9007199254740994"));
        assert!(!same("-9007199254740993", "9007199254740993"));
        assert!(!same("100000000000000000001", "1e20"));
        assert!(same("100000000000000000000", "1e20"));
        assert!(same("9007199254740993.0", "9007199254740993"));
        assert!(same("0.09007199254740993e17", "9007199254740993"));
    }

    #[test]
    fn other_numbers_are_the_same_if_they_are_the_same_double() {
        assert!(same("1.0", "1") && same("-0", "0") && same("0e99999999999999999999", "0"));
        assert!(same("0.1", "0.1000000000000000055511151231257827"));
        assert!(same("9007199254740991", "9007199254740991.0"));
        assert!(!same("1", "2") && !same("1e999", "1E999") && !same("1", "\"1\""));
    }

    #[test]
    fn large_integers_are_found_at_every_depth() {
        let root = Json::parse(r#"{"a":[1,{"b/c":-12345678901234567890}],"d":9007199254740992}"#);
        let found = large_integers(root.unwrap().as_object().unwrap());
        let expected = [
            ("/a/1/b~1c", "-1234567890123456789e1"),
            ("/d", "9007199254740992e0"),
        ];
        let expected = expected.map(|(place, exact)| (place.to_owned(), exact.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
