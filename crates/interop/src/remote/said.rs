//! What an agent elsewhere has said so far.

use upp::{AssistantContent, Media, StreamEvent};

/// What an agent elsewhere has said so far, put together from pieces, wholes and wholes that are sent again.
#[derive(Debug, Default)]
pub struct Said {
    /// What was said before this answer, and may be told again.
    known: Vec<String>,
    blocks: Vec<AssistantContent>,
    /// What each block is, in the other's words; the last of a name counts.
    names: Vec<String>,
    events: Vec<StreamEvent>,
}

impl Said {
    /// Nothing yet. What was said before, `known`, is not taken for something new.
    pub fn after<'a>(known: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            known: known.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// More of the block of this name, or its beginning.
    pub fn push(&mut self, name: &str, more: &str) {
        if more.is_empty() {
            return;
        }
        let at = self.place(name).unwrap_or_else(|| self.open(name));
        if let Some(AssistantContent::Text { text }) = self.blocks.get_mut(at) {
            text.push_str(more);
            self.events.push(StreamEvent::TextDelta {
                index: index(at),
                text: more.to_owned(),
            });
        }
    }

    /// The block of this name as it is by now. Where it goes on, only what is new is said; where it is something else,
    /// it is another block: what was said stays said.
    pub fn whole(&mut self, name: &str, whole: &str) {
        if whole.is_empty() || self.known.iter().any(|known| known == whole) {
            return;
        }
        let texts = self.blocks.iter().filter_map(text_of);
        if texts.clone().any(|text| text == whole) {
            return;
        }
        if let Some(at) = self.place(name) {
            let before = self.blocks.get(at).and_then(text_of).unwrap_or_default();
            if let Some(more) = whole.strip_prefix(before) {
                let more = more.to_owned();
                return self.push(name, &more);
            }
            if before.starts_with(whole) {
                // An older state of it.
                return;
            }
            self.forget(name);
        }
        self.push(name, whole);
    }

    /// What comes under this name is another block from here on.
    pub fn forget(&mut self, name: &str) {
        for known in self.names.iter_mut().filter(|known| *known == name) {
            known.clear();
        }
    }

    /// A file, unless it was told.
    pub fn file(&mut self, media: Media) {
        let kind = media.mime_type.split('/').next().unwrap_or_default();
        let block = match kind {
            "audio" => AssistantContent::Audio(media),
            "video" => AssistantContent::Video(media),
            _ => AssistantContent::Image(media),
        };
        if !self.blocks.contains(&block) {
            self.blocks.push(block);
            self.names.push(String::new());
        }
    }

    /// The events since the last time.
    pub fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// All of it.
    pub fn content(&self) -> Vec<AssistantContent> {
        self.blocks.clone()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|known| known == name)
    }

    fn open(&mut self, name: &str) -> usize {
        if self.blocks.is_empty() {
            self.events.push(StreamEvent::MessageStart);
        }
        self.blocks.push(AssistantContent::Text {
            text: String::new(),
        });
        self.names.push(name.to_owned());
        self.blocks.len() - 1
    }
}

fn text_of(block: &AssistantContent) -> Option<&str> {
    match block {
        AssistantContent::Text { text } => Some(text),
        AssistantContent::Reasoning { .. }
        | AssistantContent::Image(_)
        | AssistantContent::Audio(_)
        | AssistantContent::Video(_) => None,
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(said: &Said) -> Vec<&str> {
        said.blocks.iter().filter_map(text_of).collect()
    }

    #[test]
    fn a_whole_that_is_sent_again_adds_what_is_new_of_it() {
        let mut said = Said::after(["before"]);
        said.push("a", "Hel");
        said.whole("a", "Hello");
        said.whole("a", "Hel");
        said.whole("a", "before");
        assert_eq!(texts(&said), ["Hello"]);
        said.whole("a", "Other");
        said.push("a", "!");
        assert_eq!(texts(&said), ["Hello", "Other!"]);
        said.whole("b", "Hello");
        assert_eq!(texts(&said), ["Hello", "Other!"]);
        let mut shown = String::new();
        for event in said.take_events() {
            if let StreamEvent::TextDelta { text, .. } = event {
                shown.push_str(&text);
            }
        }
        assert_eq!(shown, "HelloOther!");
    }

    #[test]
    fn what_is_begun_anew_is_another_block() {
        let mut said = Said::after([]);
        said.push("a", "one");
        said.forget("a");
        said.push("a", "two");
        assert_eq!(texts(&said), ["one", "two"]);
    }
}
