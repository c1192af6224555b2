//! The file that assigns runs to agents.

use crate::error::CliError;
use crate::input::Input;
use interop::convert::AttributedFields;
use thread::Limits;

/// The file's attributions, and the agent of every run that the file does not name.
pub(crate) fn read(
    file: Option<&std::path::Path>,
    agent: Option<String>,
    limits: &Limits,
) -> Result<Vec<AttributedFields>, CliError> {
    let mut found = match file {
        None => Vec::new(),
        Some(file) => {
            let input = Input::open(Some(file))?;
            let spot = input.name.to_string();
            let text = input.text(limits.max_bytes)?;
            AttributedFields::list(&text, limits).map_err(|source| CliError::Unreadable {
                spot,
                what: "a list of who ran",
                source: source.into(),
            })?
        }
    };
    found.extend(agent.map(|agent| AttributedFields {
        agent,
        ..AttributedFields::default()
    }));
    Ok(found)
}
