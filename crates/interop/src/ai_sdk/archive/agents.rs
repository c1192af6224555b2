//! Who ran.

use crate::archive::Archive;
use crate::convert::{Attribution, ReadOptions};
use crate::document::agent_id;
use thread::Object;

/// The name of an agent that no one names.
const UNNAMED: &str = "agent";

/// The agent of a run whose first message is the `place`th of its source, registered.
pub(super) fn registered(
    archive: &mut Archive,
    options: &ReadOptions,
    place: usize,
    at: &str,
) -> String {
    let who = attributed(&options.attribution, place);
    let name = who.map_or(UNNAMED, |who| who.agent.as_str());
    let id = who.and_then(|who| who.agent_id.clone());
    let id = id.unwrap_or_else(|| agent_id(name));
    let config = Object::new()
        .with("agent_id", id.as_str())
        .with("agent_name", name)
        .with("created_at", at);
    archive.register(&id, config);
    id
}

/// The entry that counts the message, or the one that counts none.
fn attributed(attribution: &[Attribution], place: usize) -> Option<&Attribution> {
    let mut end = 0;
    let counted = attribution.iter().find(|who| {
        end += who.n_messages.unwrap_or_default();
        who.n_messages.is_some() && place < end
    });
    let any = || {
        let mut rest = attribution.iter();
        rest.find(|who| who.n_messages.is_none() && who.run_id.is_none())
    };
    counted.or_else(any)
}
