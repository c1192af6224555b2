//! What somebody wants to hear of a thread.

use crate::langgraph::error::RequestError;
use crate::langgraph::fields::Fields;
use crate::langgraph::stream::FrameId;
use crate::langgraph::{StreamMode, fields::expected};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most channels, and the most namespaces.
const MAX_ENTRIES: usize = 64;
/// The most segments of a namespace.
const MAX_SEGMENTS: usize = 64;
/// What a client calls one kind of what agents and tools send beside messages.
const CUSTOM: &str = "custom:";

/// What is told together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// The thread's values, when a run begins and when it is over.
    Values,
    /// What each step has added.
    Updates,
    /// Messages, block by block.
    Messages,
    /// Calls of tools, and their results.
    Tools,
    /// That a run begins and ends.
    Lifecycle,
    /// What is asked of a person or a client.
    Input,
    /// The states that a thread comes to.
    Checkpoints,
    /// What agents and tools send beside messages.
    Custom,
    /// Nothing: agents have no nodes here.
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

/// What somebody wants to hear of a thread, and from where on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRequest {
    channels: BTreeSet<Channel>,
    /// Of what is custom, these alone.
    named: BTreeSet<String>,
    /// Whether the root namespace is among those that were asked for.
    is_root: bool,
    /// The place of the last event that was heard.
    pub since: Option<FrameId>,
}

impl EventRequest {
    /// What a body may say.
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

    /// Whether what is said in this channel is heard.
    pub(super) fn hears(&self, channel: Channel) -> bool {
        self.is_root && self.channels.contains(&channel)
    }

    /// Whether what goes by this name beside messages is heard.
    pub(super) fn hears_custom(&self, name: &str) -> bool {
        self.hears(Channel::Custom) || self.is_root && self.named.contains(name)
    }

    /// What must be known of a run to tell it.
    pub(super) fn modes(&self) -> Vec<StreamMode> {
        let mut modes = Vec::new();
        let mut want = |mode, is_wanted| modes.extend(Some(mode).filter(|_| is_wanted));
        want(StreamMode::Values, self.hears(Channel::Values));
        want(StreamMode::Updates, self.hears(Channel::Updates));
        want(StreamMode::MessagesTuple, self.hears(Channel::Messages));
        let hears_custom = self.hears(Channel::Custom) || self.is_root && !self.named.is_empty();
        want(StreamMode::Custom, hears_custom);
        modes
    }
}

/// Whether the root is among the namespaces: a namespace stands for all that begin with it.
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
