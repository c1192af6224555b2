//! A stream of events, read frame by frame.

use super::answers::{self, Failure};
use crate::error::CliError;
use reqwest::Response;
use runtime::{AgentStreamEvent, FollowedRecord, Watched};
use std::sync::Arc;
use timeline::Seq;

/// The end of a frame.
const END: &[u8] = b"\n\n";

/// The frames of a stream.
pub(crate) struct Frames {
    response: Response,
    server: String,
    buffer: Vec<u8>,
    /// Up to here the buffer has no end of a frame.
    searched: usize,
    /// The id of the last event.
    last_id: String,
}

impl Frames {
    pub(super) fn new(response: Response, server: String) -> Self {
        Self {
            response,
            server,
            buffer: Vec::new(),
            searched: 0,
            last_id: String::new(),
        }
    }

    /// The place of the last event, if the server sent it before it was committed: the last number of
    /// the log, and its own number after that one. Its id is `10.5f0c21ab.3`.
    pub(crate) fn provisional(&self) -> Option<(Seq, u64)> {
        let (seq, rest) = self.last_id.split_once('.')?;
        let (_, count) = rest.split_once('.')?;
        Some((Seq(seq.parse().ok()?), count.parse().ok()?))
    }

    /// The next thing that happens; none at the end of the stream.
    pub(crate) async fn next(&mut self, thread: &str) -> Result<Option<Watched>, CliError> {
        while let Some(frame) = self.frame().await? {
            let lines = |name: &str| {
                let lines = frame.lines().filter_map(|line| line.strip_prefix(name));
                lines.collect::<Vec<_>>().join("\n")
            };
            let data = lines("data: ");
            self.last_id = lines("id: ");
            match lines("event: ").as_str() {
                // A comment.
                "" => {}
                "error" => return Err(answers::read::<Failure>(&data)?.into_error(thread)),
                "subagent" => {
                    if let AgentStreamEvent::Uap { uap } = answers::read(&data)?
                        && let Some(event) = uap.subagent()
                    {
                        return Ok(Some(Watched::Subagent(Box::new(event))));
                    }
                }
                _ => {
                    let logged = Arc::new(answers::logged(data)?);
                    return Ok(Some(Watched::Record(FollowedRecord::stored(logged))));
                }
            }
        }
        Ok(None)
    }

    async fn frame(&mut self) -> Result<Option<String>, CliError> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = rest.windows(END.len()).position(|window| window == END) {
                let end = self.searched + at + END.len();
                let frame = self.buffer.drain(..end).collect();
                self.searched = 0;
                return String::from_utf8(frame)
                    .map(Some)
                    .map_err(|source| CliError::Unreached {
                        server: self.server.clone(),
                        source: source.into(),
                    });
            }
            self.searched = self.buffer.len().saturating_sub(1);
            let piece = self.response.chunk().await;
            let piece = piece.map_err(|source| CliError::Unreached {
                server: self.server.clone(),
                source: source.without_url().into(),
            })?;
            match piece {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}
