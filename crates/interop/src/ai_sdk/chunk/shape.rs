//! The rules of the clients' schemas for a value.

use thread::Json;

/// The finish reasons that every client knows.
pub(in crate::ai_sdk) const REASONS: [&str; 6] = [
    "stop",
    "length",
    "content-filter",
    "tool-calls",
    "error",
    "other",
];

/// The shape that a field must have.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Flag,
    Any,
    Object,
    /// An object of objects, by provider.
    Metadata,
    Word(&'static [&'static str], &'static str),
    /// A finish reason: one of [`REASONS`], or the one named here.
    Reason(Option<&'static str>),
    Citations,
    Steering,
}

impl Shape {
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "a boolean",
            Self::Any => "a value",
            Self::Object => "an object",
            Self::Metadata => "an object of objects",
            Self::Word(_, expected) => expected,
            Self::Reason(_) => "a finish reason",
            Self::Citations => "an array of citations",
            Self::Steering => "an array of text and file parts",
        }
    }

    pub(super) fn fits(self, value: &Json) -> bool {
        match self {
            Self::Text => value.as_str().is_some(),
            Self::Flag => value.as_bool().is_some(),
            Self::Any => true,
            Self::Object => value.as_object().is_some(),
            Self::Metadata => is_metadata(value),
            Self::Word(words, _) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Reason(more) => value
                .as_str()
                .is_some_and(|word| REASONS.contains(&word) || more == Some(word)),
            Self::Citations => every(value, is_citation),
            Self::Steering => every(value, is_steering),
        }
    }
}

fn every(value: &Json, fits: fn(&Json) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

fn has_text(value: &Json, keys: &[&str]) -> bool {
    let is_text = |key: &&str| value.get(key).is_some_and(|text| text.as_str().is_some());
    keys.iter().all(is_text)
}

/// Whether each of these members is absent or a string.
fn may_have_text(value: &Json, keys: &[&str]) -> bool {
    let is_text = |key: &&str| value.get(key).is_none_or(|text| text.as_str().is_some());
    keys.iter().all(is_text)
}

fn is_metadata(value: &Json) -> bool {
    let Some(object) = value.as_object() else {
        return false;
    };
    object.iter().all(|(_, inner)| inner.as_object().is_some())
}

fn may_have_metadata(value: &Json) -> bool {
    value.get("providerMetadata").is_none_or(is_metadata)
}

fn is_citation(value: &Json) -> bool {
    let Some(source) = value.get("source") else {
        return false;
    };
    let known = match source.get("sourceType").and_then(Json::as_str) {
        Some("url") => has_text(source, &["id", "url"]) && may_have_text(source, &["title"]),
        Some("document") => {
            has_text(source, &["id", "mediaType", "title"]) && may_have_text(source, &["filename"])
        }
        _ => false,
    };
    known
        && source.get("type").and_then(Json::as_str) == Some("source")
        && may_have_metadata(source)
        && may_have_text(value, &["citedText"])
        && ["startIndex", "endIndex"]
            .into_iter()
            .all(|key| value.get(key).is_none_or(is_index))
}

/// Whether a number is an offset: whole, not negative, and exact in JavaScript.
fn is_index(value: &Json) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64();
    number.is_some_and(|number| number.fract() == 0.0 && (0.0..=LARGEST).contains(&number))
}

fn is_steering(value: &Json) -> bool {
    let known = match value.get("type").and_then(Json::as_str) {
        Some("text") => has_text(value, &["text"]),
        Some("file") => {
            let reference = value.get("providerReference");
            has_text(value, &["mediaType", "url"])
                && may_have_text(value, &["filename"])
                && reference.is_none_or(is_reference)
        }
        _ => false,
    };
    known && may_have_metadata(value)
}

fn is_reference(value: &Json) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.iter().all(|(_, text)| text.as_str().is_some()))
}
