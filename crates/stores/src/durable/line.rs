//! The lines of an export.

use crate::block::{Block, BlockFault, BlockReader, ToStore, one_block, split};
use crate::sum::Erased;
use crate::value::{hex, unhex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::objects::sha256;
use timeline::Event;

/// The form of exports that this program writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first line.
    Tenant(TenantLine),
    /// A thread. A fork comes after its parent.
    Thread(ThreadLine),
    /// Events of the last thread that were written together.
    Events(EventsLine),
    /// A token of the last thread.
    Token(TokenLine),
    /// The content of files. Objects come after it.
    Content(ContentLine),
    /// An object.
    Object(ObjectLine),
    /// The state of an agent.
    Checkpoint(CheckpointLine),
    /// The last line.
    End(EndLine),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantLine {
    pub(crate) format: u32,
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) exported_at: Timestamp,
}

impl TenantLine {
    /// The first line of an export that begins now.
    pub(crate) fn now(tenant: &str) -> Self {
        Self {
            format: FORMAT,
            name: tenant.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            exported_at: Timestamp::now(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadLine {
    pub(crate) id: String,
    pub(crate) key: Option<String>,
    /// The id of the parent of a fork.
    pub(crate) parent: Option<String>,
    /// The event after which a fork begins.
    pub(crate) fork_seq: Option<i64>,
    pub(crate) created_at: Timestamp,
    pub(crate) events: i64,
    /// The size of the events' texts.
    pub(crate) bytes: i64,
    /// The place in the list of threads.
    pub(crate) change: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsLine {
    /// The number of the first one.
    pub(crate) first: u64,
    pub(crate) epoch: u64,
    /// The SHA-256 of the body that the block had before its content was erased, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) erased: Option<String>,
    pub(crate) list: Vec<EventText>,
}

impl EventsLine {
    /// The line of a block.
    pub(crate) fn of(
        first: u64,
        epoch: u64,
        erased: Option<&Erased>,
        reader: BlockReader<'_>,
    ) -> Result<Self, BlockFault> {
        let mut list = Vec::new();
        for decoded in reader {
            let decoded = decoded?;
            list.push(EventText {
                at: decoded.at,
                text: decoded.text()?,
            });
        }
        let written = erased.and_then(|it| it.first_chunk::<32>());
        Ok(Self {
            first,
            epoch,
            erased: written.map(|digest| hex(digest)),
            list,
        })
    }

    /// The events as blocks. Of an erased block, with the digest of the body that was written.
    pub(crate) fn blocks(&self) -> Result<(Vec<Block>, Option<[u8; 32]>), String> {
        let mut events: Vec<(Timestamp, Event, Option<&str>, usize)> = Vec::new();
        for it in &self.list {
            let event = Event::decode(&it.text).map_err(|error| error.to_string())?;
            // The text is stored where this program would write another one.
            let is_ours = event.encode().is_ok_and(|text| text == it.text);
            let raw = (!is_ours).then_some(it.text.as_str());
            events.push((it.at, event, raw, it.text.len()));
        }
        let to_store = events.iter().map(|(at, event, raw, size)| ToStore {
            at: *at,
            event,
            size: *size,
            raw: *raw,
        });
        let Some(digits) = &self.erased else {
            return Ok((split(to_store), None));
        };
        let digest = unhex(digits).ok_or("a digest has 64 hexadecimal digits")?;
        let block = one_block(to_store).ok_or("the events of an erased block are not one block")?;
        Ok((vec![block], Some(digest)))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventText {
    pub(crate) at: Timestamp,
    /// The event's JSON, byte for byte.
    pub(crate) text: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenLine {
    pub(crate) token: String,
    pub(crate) answer: String,
    pub(crate) seq: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentLine {
    /// In hexadecimal digits.
    pub(crate) sha256: String,
    /// In Base64.
    pub(crate) data: String,
}

impl ContentLine {
    pub(crate) fn of(hash: &[u8], content: &[u8]) -> Self {
        Self {
            sha256: hex(hash),
            data: STANDARD.encode(content),
        }
    }

    /// The content and its SHA-256.
    pub(crate) fn content(&self) -> Result<(Vec<u8>, [u8; 32]), String> {
        let content = STANDARD.decode(&self.data);
        let content = content.map_err(|error| error.to_string())?;
        let hash = sha256(&content);
        if hex(&hash) != self.sha256 {
            return Err("the content has another SHA-256".to_owned());
        }
        Ok((content, hash))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectLine {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) created_at: i64,
    /// The id of the thread that it goes with.
    pub(crate) thread: Option<String>,
    /// The SHA-256 of its content.
    pub(crate) content: Option<String>,
    /// The object's JSON, byte for byte.
    pub(crate) text: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointLine {
    pub(crate) session_id: String,
    pub(crate) checkpoint_id: String,
    pub(crate) saved_at: i64,
    pub(crate) step: i64,
    pub(crate) agent_id: Option<String>,
    pub(crate) state: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndLine {
    #[serde(flatten)]
    pub(crate) counts: Transferred,
    /// Of all lines before this one.
    pub(crate) sha256: String,
}

/// How much was exported or imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transferred {
    /// Threads.
    pub threads: u64,
    /// Events.
    pub events: u64,
    /// Tokens.
    pub tokens: u64,
    /// Contents of files.
    pub contents: u64,
    /// Objects.
    pub objects: u64,
    /// Checkpoints of agents.
    pub checkpoints: u64,
}

impl Transferred {
    /// Counts a line.
    pub(crate) fn count(&mut self, line: &Line) {
        match line {
            Line::Thread(_) => self.threads += 1,
            Line::Events(events) => self.events += events.list.len() as u64,
            Line::Token(_) => self.tokens += 1,
            Line::Content(_) => self.contents += 1,
            Line::Object(_) => self.objects += 1,
            Line::Checkpoint(_) => self.checkpoints += 1,
            Line::Tenant(_) | Line::End(_) => {}
        }
    }
}
