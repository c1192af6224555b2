//! The output of a remote agent so far.

use upp::{AssistantContent, Media, StreamEvent};

/// The output of a remote agent so far, assembled from deltas, full texts and repetitions.
///
/// A text is identified by its name, not by its content: equal texts with two names are two texts.
/// If a text starts again, it is compared with the part already streamed, and only the new rest is
/// streamed. If the two differ, the text is streamed in full under a new index.
#[derive(Debug, Default)]
pub struct TextPieces {
    blocks: Vec<Block>,
    n_shown: u32,
    /// Whether the incoming text may be a repetition. Nothing is streamed until that is clear.
    pub(super) holds: bool,
}

/// A text, or a file.
#[derive(Debug, Default)]
struct Block {
    name: String,
    text: String,
    file: Option<AssistantContent>,
    /// The index under which the text is streamed; `None` before that.
    index: Option<u32>,
    /// The number of bytes of the text that were streamed.
    n_shown: usize,
    /// The part streamed before the text started again. `None` once the text has reached its end or
    /// differs from it.
    former: Option<String>,
}

impl Block {
    fn begin(&mut self) {
        let mut shown = std::mem::take(&mut self.text);
        if self.former.is_none() {
            shown.truncate(self.n_shown);
            self.former = Some(shown);
        }
        self.n_shown = 0;
    }

    /// The part of the text that was not streamed yet.
    fn more(&mut self) -> Option<String> {
        if let Some(former) = &self.former {
            if self.text.starts_with(former.as_str()) {
                self.n_shown = former.len();
            } else if former.starts_with(&self.text) {
                return None;
            } else {
                self.index = None;
            }
            self.former = None;
        }
        let more = self.text.get(self.n_shown..).unwrap_or_default().to_owned();
        self.n_shown = self.text.len();
        (!more.is_empty()).then_some(more)
    }

    fn content(&self) -> Option<AssistantContent> {
        if self.file.is_some() {
            return self.file.clone();
        }
        let text = self.text.clone();
        (!text.is_empty()).then_some(AssistantContent::Text { text })
    }
}

impl TextPieces {
    /// More of the text of this name, or its beginning.
    pub fn push(&mut self, name: &str, more: &str) {
        if self.find(name).is_none() && !more.is_empty() {
            self.blocks.push(Block {
                name: name.to_owned(),
                ..Block::default()
            });
        }
        if let Some(block) = self.find(name) {
            block.text.push_str(more);
        }
    }

    /// The text of this name starts again: repeated, or in another form.
    pub fn begin(&mut self, name: &str) {
        if let Some(block) = self.find(name) {
            block.begin();
        }
    }

    /// Replaces the text of this name by its current full text.
    pub fn whole(&mut self, name: &str, whole: &str) {
        self.begin(name);
        self.push(name, whole);
    }

    /// The text of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let block = self.blocks.iter().find(|block| block.name == name);
        block.map(|block| block.text.as_str())
    }

    /// Renames a text. Later text under the old name is another text.
    pub fn rename(&mut self, name: &str, to: &str) {
        if let Some(block) = self.find(name) {
            to.clone_into(&mut block.name);
        }
    }

    /// Moves a text to the end.
    pub fn put_last(&mut self, name: &str) {
        let place = self.blocks.iter().position(|block| block.name == name);
        if let Some(place) = place {
            let block = self.blocks.remove(place);
            self.blocks.push(block);
        }
    }

    /// Removes the texts for whose names `is_kept` is false. Files stay.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.blocks
            .retain(|block| block.file.is_some() || is_kept(&block.name));
    }

    /// The names of the texts, in order.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        let texts = self.blocks.iter().filter(|block| !block.text.is_empty());
        texts.map(|block| block.name.as_str())
    }

    /// Adds a file, unless it is already there.
    pub fn file(&mut self, media: Media) {
        let kind = media.mime_type.split('/').next().unwrap_or_default();
        let file = Some(match kind {
            "audio" => AssistantContent::Audio(media),
            "video" => AssistantContent::Video(media),
            _ => AssistantContent::Image(media),
        });
        if !self.blocks.iter().any(|block| block.file == file) {
            self.blocks.push(Block {
                file,
                ..Block::default()
            });
        }
    }

    /// The events since the last time.
    pub fn take_events(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if self.holds {
            return events;
        }
        for block in &mut self.blocks {
            let Some(text) = block.more() else {
                continue;
            };
            if self.n_shown == 0 {
                events.push(StreamEvent::MessageStart);
            }
            let index = *block.index.get_or_insert(self.n_shown);
            self.n_shown = self.n_shown.max(index.saturating_add(1));
            events.push(StreamEvent::TextDelta { index, text });
        }
        events
    }

    /// The content of all texts and files.
    pub fn content(&self) -> Vec<AssistantContent> {
        self.blocks.iter().filter_map(Block::content).collect()
    }

    fn find(&mut self, name: &str) -> Option<&mut Block> {
        let mut blocks = self.blocks.iter_mut();
        blocks.find(|block| block.file.is_none() && block.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(said: &TextPieces) -> Vec<&str> {
        let texts = said.blocks.iter().map(|block| block.text.as_str());
        texts.filter(|text| !text.is_empty()).collect()
    }

    fn shown(said: &mut TextPieces) -> Vec<(u32, String)> {
        let mut shown = Vec::new();
        for event in said.take_events() {
            if let StreamEvent::TextDelta { index, text } = event {
                shown.push((index, text));
            }
        }
        shown
    }

    #[test]
    fn a_text_that_is_told_again_shows_what_is_new_of_it() {
        let mut said = TextPieces::default();
        said.push("a", "Hel");
        assert_eq!(shown(&mut said), [(0, "Hel".to_owned())]);
        said.begin("a");
        said.push("a", "He");
        assert_eq!(shown(&mut said), []);
        said.push("a", "llo");
        assert_eq!(shown(&mut said), [(0, "lo".to_owned())]);
        said.whole("a", "Hel");
        said.whole("a", "Hello!");
        assert_eq!(shown(&mut said), [(0, "!".to_owned())]);
        assert_eq!(texts(&said), ["Hello!"]);
    }

    #[test]
    fn a_text_that_comes_otherwise_takes_the_place_of_what_was_shown() {
        let mut said = TextPieces::default();
        said.push("a", "one two");
        shown(&mut said);
        said.begin("a");
        said.push("a", "one");
        assert_eq!(shown(&mut said), []);
        said.push("a", " more");
        assert_eq!(shown(&mut said), [(1, "one more".to_owned())]);
        assert_eq!(texts(&said), ["one more"]);
    }

    #[test]
    fn the_same_words_under_two_names_are_two_texts() {
        let mut said = TextPieces::default();
        said.push("a", "yes");
        said.rename("a", "first");
        said.push("a", "yes");
        said.whole("b", "yes");
        assert_eq!(texts(&said), ["yes", "yes", "yes"]);
        assert_eq!(shown(&mut said).len(), 3);
    }
}
