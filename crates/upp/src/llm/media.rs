//! What a model can't take (UPP §2).

use crate::content::UserContent;
use crate::message::{Message, Messages};
use crate::model::Capabilities;

/// Names the first media in user messages that the model can't take. The whole history is
/// checked, not only the input: all of it is sent. Binary blocks have no capability.
pub(super) fn unsupported(can: Capabilities, messages: &Messages) -> Option<&'static str> {
    if can.image_input && can.document_input && can.video_input && can.audio_input {
        return None;
    }
    messages.iter().find_map(|message| match message {
        Message::User(user) => user.content.iter().find_map(|block| refused(can, block)),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    })
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
