//! Subscriptions to the events of a thread.

use crate::langgraph::error::RequestError;
use crate::langgraph::fields::{Fields, expected};
use crate::langgraph::stream::FrameId;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most channels, and the most namespaces.
const MAX_ENTRIES: usize = 64;
/// The most segments of a namespace.
const MAX_SEGMENTS: usize = 64;
/// The prefix of a channel that has the custom data of one name.
const CUSTOM: &str = "custom:";

/// A channel of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// The thread's values, when a run starts and when it ends.
    Values,
    /// The messages that each step added.
    Updates,
    /// Messages, block by block.
    Messages,
    /// Calls of tools, and their results.
    Tools,
    /// The start and the end of a run.
    Lifecycle,
    /// Interrupts: requests to a person or a client.
    Input,
    /// The states of the thread after each run.
    Checkpoints,
    /// Custom data of agents and tools.
    Custom,
    /// Always empty, because agents have no nodes.
    Tasks,
}

impl Channel {
    const NAMES: [(&str, Self); 9] = [
        ("values", Self::Values),
        ("updates", Self::Updates),
        ("messages", Self::Messages),
        ("tools", Self::Tools),
        ("lifecycle", Self::Lifecycle),
        ("input", Self::Input),
        ("checkpoints", Self::Checkpoints),
        ("custom", Self::Custom),
        ("tasks", Self::Tasks),
    ];
}

/// A subscription to events of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRequest {
    channels: BTreeSet<Channel>,
    /// The names of custom data that the client selected without the whole channel.
    named: BTreeSet<String>,
    /// Whether the client selected the root namespace.
    is_root: bool,
    /// The id of the last event that the reader has.
    pub since: Option<FrameId>,
}

impl EventRequest {
    /// The members of a body.
    pub const KNOWN: &'static [&'static str] = &["channels", "namespaces", "depth", "since"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let (mut channels, mut named) = (BTreeSet::new(), BTreeSet::new());
        let list = fields.texts("channels", MAX_ENTRIES)?;
        if list.is_empty() {
            return Err(fields.wrong("channels", "expected one channel at the least"));
        }
        for (n, name) in list.into_iter().enumerate() {
            if let Some(name) = name.strip_prefix(CUSTOM).filter(|it| !it.is_empty()) {
                named.insert(name.to_owned());
                continue;
            }
            let known = Channel::NAMES.iter().find(|(known, _)| *known == name);
            let Some((_, channel)) = known else {
                let words = Channel::NAMES.iter().map(|it| it.0);
                let what = format!("{} or \"{CUSTOM}NAME\"", expected(words));
                return Err(RequestError::at(format!("/channels/{n}"), what));
            };
            channels.insert(*channel);
        }
        fields.whole("depth", 0, u64::from(u32::MAX))?;
        let since = fields.whole("since", 0, u64::MAX)?;
        Ok(Self {
            channels,
            named,
            is_root: is_root(&fields)?,
            since: since.map(FrameId::of_number),
        })
    }

    /// Whether the client selected this channel.
    pub(super) fn wants(&self, channel: Channel) -> bool {
        self.is_root && self.channels.contains(&channel)
    }

    /// Whether the client selected custom data of this name.
    pub(super) fn wants_custom(&self, name: &str) -> bool {
        self.wants(Channel::Custom) || self.is_root && self.named.contains(name)
    }
}

/// Whether the namespaces include the root. A namespace includes all namespaces that start with it.
fn is_root(fields: &Fields<'_>) -> Result<bool, RequestError> {
    let Some(list) = fields.placed("namespaces", MAX_ENTRIES)? else {
        return Ok(true);
    };
    let mut is_root = list.is_empty();
    for (pointer, namespace) in list {
        let segments = namespace.as_array().filter(|segments| {
            segments.len() <= MAX_SEGMENTS && segments.iter().all(Value::is_string)
        });
        let Some(segments) = segments else {
            let what = format!("expected a list of at most {MAX_SEGMENTS} strings");
            return Err(RequestError::at(pointer, what));
        };
        is_root |= segments.is_empty();
    }
    Ok(is_root)
}
