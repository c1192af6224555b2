//! Conflicts as JSON and as text for people.

use super::{Conflict, ConflictKind};
use crate::diff::{brief, printable};
use crate::json::{Json, Object};
use std::fmt::{self, Display, Formatter};

impl ConflictKind {
    /// The name of the kind.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BothChanged => "both-changed",
            Self::BothAppended => "both-appended",
            Self::BothInserted => "both-inserted",
            Self::RemovedAndChanged => "removed-and-changed",
            Self::Breach { .. } => "breach",
        }
    }
}

impl Conflict {
    /// The conflict as JSON: `kind`, `pointer`, the existing values of `base`, `ours` and `theirs`,
    /// and for a breach `rule` and `message`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let object = Object::new()
            .with("kind", self.kind.as_str())
            .with("pointer", self.pointer.as_str())
            .with_some("base", self.base.clone())
            .with_some("ours", self.ours.clone())
            .with_some("theirs", self.theirs.clone());
        let object = match &self.kind {
            ConflictKind::Breach { rule, message } => object
                .with("rule", rule.id())
                .with("message", message.as_str()),
            ConflictKind::BothChanged
            | ConflictKind::BothAppended
            | ConflictKind::BothInserted
            | ConflictKind::RemovedAndChanged => object,
        };
        object.into()
    }
}

/// One line and one for each value, shortened and safe for a terminal.
impl Display for Conflict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let pointer = printable(&self.pointer);
        let what = match &self.kind {
            ConflictKind::BothChanged => "both changed it, ours is kept",
            ConflictKind::BothAppended => "both added at the end, theirs comes after ours",
            ConflictKind::BothInserted => "both added here, theirs comes after ours",
            ConflictKind::RemovedAndChanged => "one removed what the other needs, it is kept",
            ConflictKind::Breach { rule, message } => {
                let message = printable(message);
                return write!(formatter, "\"{pointer}\": together {rule}: {message}");
            }
        };
        write!(formatter, "\"{pointer}\": {what}")?;
        let values = [
            ("base", &self.base),
            ("ours", &self.ours),
            ("theirs", &self.theirs),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                write!(formatter, "\n  {name}: {}", brief(value))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::Rule;

    #[test]
    fn a_conflict_is_shown_with_the_values_there_are() {
        let conflict = Conflict {
            kind: ConflictKind::RemovedAndChanged,
            pointer: "/title".to_owned(),
            base: Some("a".into()),
            ours: None,
            theirs: Some("\u{1b}b".into()),
        };
        let expected = "\"/title\": one removed what the other needs, it is kept\n  base: \"a\"\n  theirs: \"\\u{1b}b\"";
        assert_eq!(conflict.to_string(), expected);
        let expected =
            r#"{"kind":"removed-and-changed","pointer":"/title","base":"a","theirs":"\u001bb"}"#;
        assert_eq!(conflict.to_json().to_text(), expected);
    }

    #[test]
    fn a_breach_is_shown_with_its_rule() {
        let rule = Rule::CompletedAt;
        let message = "an interrupted turn did not complete".to_owned();
        let conflict = Conflict {
            kind: ConflictKind::Breach { rule, message },
            pointer: "/turns/0/completed_at".to_owned(),
            base: None,
            ours: None,
            theirs: None,
        };
        let expected = "\"/turns/0/completed_at\": together tp-completed-at: an interrupted turn did not complete";
        assert_eq!(conflict.to_string(), expected);
        let rule = conflict.to_json().get("rule").cloned();
        assert_eq!(rule, Some("tp-completed-at".into()));
    }
}
