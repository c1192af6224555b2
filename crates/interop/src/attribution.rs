//! The agents of runs, as the caller states them: a JSON list.

use crate::convert::AttributedFields;
use thread::{DecodeError, Json, Limits, Object};

/// An error of reading a list of agents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributionError {
    /// The text is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// A member has an unexpected value.
    #[error("\"{pointer}\": expected {expected}")]
    Misfit {
        /// The JSON Pointer in the list.
        pointer: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl AttributedFields {
    /// Reads a JSON list of `agent`, `agent_id`, `run_id` and `n_messages` or `n_new_messages`;
    /// other members are ignored.
    pub fn list(text: &str, limits: &Limits) -> Result<Vec<Self>, AttributionError> {
        entries(&Json::parse_with(text, limits)?)
    }
}

fn entries(json: &Json) -> Result<Vec<AttributedFields>, AttributionError> {
    let misfit = |pointer: String, expected| AttributionError::Misfit { pointer, expected };
    let list = json
        .as_array()
        .ok_or_else(|| misfit(String::new(), "a list"))?;
    let entry = |(place, entry): (usize, &Json)| {
        let object = entry
            .as_object()
            .ok_or_else(|| misfit(format!("/{place}"), "an object"))?;
        let agent = string(object, place, "agent")?;
        Ok(AttributedFields {
            agent: agent.ok_or_else(|| misfit(format!("/{place}/agent"), "a name"))?,
            agent_id: string(object, place, "agent_id")?,
            run_id: string(object, place, "run_id")?,
            n_messages: match number(object, place, "n_messages")? {
                None => number(object, place, "n_new_messages")?,
                found => found,
            },
        })
    };
    list.iter().enumerate().map(entry).collect()
}

fn string(object: &Object, place: usize, key: &str) -> Result<Option<String>, AttributionError> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .map(|text| Some(text.to_owned()))
            .ok_or_else(|| AttributionError::Misfit {
                pointer: format!("/{place}/{key}"),
                expected: "a string",
            }),
    }
}

fn number(object: &Object, place: usize, key: &str) -> Result<Option<usize>, AttributionError> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value
            .to_text()
            .parse()
            .map(Some)
            .map_err(|_| AttributionError::Misfit {
                pointer: format!("/{place}/{key}"),
                expected: "a count",
            }),
    }
}
