//! The file that says who ran.

use crate::error::CliError;
use crate::input::Input;
use interop::convert::Attribution;
use thread::{Json, Limits, Object};

/// A member of the file is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("\"{pointer}\": expected {expected}")]
struct Misfit {
    pointer: String,
    expected: &'static str,
}

/// Reads a JSON list of `agent`, `agent_id`, `run_id` and `n_messages` or `n_new_messages`;
/// other members are left alone.
pub(super) fn read(input: Input, limits: &Limits) -> Result<Vec<Attribution>, CliError> {
    let spot = input.name.to_string();
    let text = input.text(limits.max_bytes)?;
    let unread = |source| CliError::Unread {
        spot,
        what: "a list of who ran",
        source,
    };
    let json = match Json::parse_with(&text, limits) {
        Ok(json) => json,
        Err(error) => return Err(unread(error.into())),
    };
    entries(&json).map_err(|misfit| unread(misfit.into()))
}

fn entries(json: &Json) -> Result<Vec<Attribution>, Misfit> {
    let misfit = |pointer: String, expected| Misfit { pointer, expected };
    let list = json
        .as_array()
        .ok_or_else(|| misfit(String::new(), "a list"))?;
    let entry = |(place, entry): (usize, &Json)| {
        let object = entry
            .as_object()
            .ok_or_else(|| misfit(format!("/{place}"), "an object"))?;
        let agent = string(object, place, "agent")?;
        Ok(Attribution {
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

fn string(object: &Object, place: usize, key: &str) -> Result<Option<String>, Misfit> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .map(|text| Some(text.to_owned()))
            .ok_or_else(|| Misfit {
                pointer: format!("/{place}/{key}"),
                expected: "a string",
            }),
    }
}

fn number(object: &Object, place: usize, key: &str) -> Result<Option<usize>, Misfit> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value.to_text().parse().map(Some).map_err(|_| Misfit {
            pointer: format!("/{place}/{key}"),
            expected: "a count",
        }),
    }
}
