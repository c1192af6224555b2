//! Checking a whole text and counting its values without building them.

use super::Scanner;
use crate::json::{DecodeError, Limits};

/// The numbers of values of each kind in a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values of any type. Keys are not counted.
    pub values: usize,
    /// Arrays and objects that are not empty.
    pub containers: usize,
    /// Members of all objects.
    pub members: usize,
    /// The deepest nesting of arrays and objects.
    pub depth: usize,
}

/// Checks that a text is JSON within limits and counts its values. It builds no value: it needs
/// memory only for the keys of the enclosing objects.
///
/// # Errors
///
/// The error that [`Json::parse_with`](crate::Json::parse_with) returns for this text.
///
/// ```
/// use loomline_thread::json::{check, Limits};
///
/// let counts = check(r#"{"a":[1,2],"b":{}}"#, &Limits::default())?;
/// assert_eq!((counts.values, counts.depth), (5, 2));
/// # Ok::<(), loomline_thread::json::DecodeError>(())
/// ```
pub fn check(text: &str, limits: &Limits) -> Result<Counts, DecodeError> {
    let mut scanner = Scanner::new(text, limits)?;
    scanner.skip()?;
    let counts = scanner.counts;
    scanner.finish()?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use proptest::prelude::*;

    /// The counts of a value, from its tree.
    fn counts_of(json: &Json) -> Counts {
        let (children, members): (Vec<&Json>, usize) = match json {
            Json::Array(items) => (items.iter().collect(), 0),
            Json::Object(object) => (
                object.iter().map(|(_, value)| value).collect(),
                object.len(),
            ),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => (Vec::new(), 0),
        };
        let is_container = matches!(json, Json::Array(_) | Json::Object(_));
        let own = Counts {
            values: 1,
            containers: usize::from(!children.is_empty()),
            members,
            depth: 0,
        };
        let mut all = children.into_iter().fold(own, |all, child| {
            let inner = counts_of(child);
            Counts {
                values: all.values + inner.values,
                containers: all.containers + inner.containers,
                members: all.members + inner.members,
                depth: all.depth.max(inner.depth),
            }
        });
        all.depth += usize::from(is_container);
        all
    }

    /// Texts that are JSON, nearly JSON, or pieces of it.
    fn texts() -> impl Strategy<Value = String> {
        let scalars = prop_oneof![
            9 => Just("null".to_owned()),
            9 => Just("true".to_owned()),
            9 => "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
            9 => "\"[a-z\\\\\"\u{e9}]{0,6}\"",
            1 => "[a-z0-9+.-]{0,4}",
        ];
        let nested = scalars.prop_recursive(6, 48, 6, |inner| {
            let list = prop::collection::vec(inner, 0..6);
            let separators = prop_oneof![40 => Just(","), 1 => Just(" "), 1 => Just(",,")];
            (list, separators, any::<u8>()).prop_map(|(list, separator, kind)| match kind % 16 {
                0 => format!("[{}", list.join(separator)),
                1..=7 => format!("[{}]", list.join(separator)),
                _ => {
                    // Some keys are repeated.
                    let member = |(n, value)| format!("\"k{}\":{value}", n * usize::from(kind) % 7);
                    let members: Vec<_> = list.iter().enumerate().map(member).collect();
                    format!("{{{}}}", members.join(separator))
                }
            })
        });
        (nested, "[ \n]{0,2}(|||||[]}])").prop_map(|(text, rest)| text + &rest)
    }

    proptest! {
        #[test]
        fn scanner_and_parser_agree_on_validity_depth_and_counts(
            text in texts(),
            max_depth in 1_usize..8,
            max_nodes in 1_usize..64,
        ) {
            for limits in [Limits::default(), Limits { max_depth, max_nodes, ..Limits::default() }] {
                let parsed = Json::parse_with(&text, &limits);
                prop_assert_eq!(check(&text, &limits), parsed.map(|json| counts_of(&json)));
            }
        }
    }

    #[test]
    fn counts_tell_values_members_and_containers_apart() {
        let counts = check(r#"[{"a":1,"b":[]},[[0]],{}]"#, &Limits::default());
        let expected = Counts {
            values: 8,
            containers: 4,
            members: 2,
            depth: 3,
        };
        assert_eq!(counts, Ok(expected));
    }
}
