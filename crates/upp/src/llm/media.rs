//! Checks a model's capabilities (UPP §2, §11).

use crate::content::UserContent;
use crate::message::{Message, Messages};
use crate::model::Capabilities;
use crate::tool::Tool;
use serde_json::Value;

impl Capabilities {
    /// The capability that these options need and the model lacks: tool calls or structured output.
    /// `None` if it lacks neither.
    #[must_use]
    pub fn lacks(self, tools: &[Tool], structure: Option<&Value>) -> Option<&'static str> {
        if structure.is_some() && !self.structured_output {
            return Some("answer in a given structure");
        }
        (!tools.is_empty() && !self.tools).then_some("call tools")
    }

    /// The first media type in user messages that the model does not accept. The whole history is
    /// checked, because all of it is sent. Binary blocks have no capability.
    #[must_use]
    pub fn refuses(self, messages: &Messages) -> Option<&'static str> {
        if self.image_input && self.document_input && self.video_input && self.audio_input {
            return None;
        }
        messages.iter().find_map(|message| match message {
            Message::User(user) => user.content.iter().find_map(|block| refused(self, block)),
            Message::Assistant(_) | Message::ToolResult(_) => None,
        })
    }
}

fn refused(can: Capabilities, block: &UserContent) -> Option<&'static str> {
    match block {
        UserContent::Image(_) if !can.image_input => Some("images"),
        UserContent::Document(_) if !can.document_input => Some("documents"),
        UserContent::Audio(_) if !can.audio_input => Some("audio"),
        UserContent::Video(_) if !can.video_input => Some("video"),
        UserContent::Text { .. }
        | UserContent::Image(_)
        | UserContent::Document(_)
        | UserContent::Audio(_)
        | UserContent::Video(_)
        | UserContent::Binary(_) => None,
    }
}
