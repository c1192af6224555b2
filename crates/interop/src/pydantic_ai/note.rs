//! Reads and checks a history in one pass, and collects the properties that matter for runs.

use super::PydanticAiError;
use super::check::{self, PartNote, refused};
use super::schema::{MESSAGE, OF_REQUESTS, OF_RESPONSES, Side, USAGE};
use std::borrow::Cow;
use std::ops::Range;
use thread::Limits;
use thread::json::{Member, Scanner, Shape, Step, Within};

/// The properties of one message that matter for runs.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Default)]
pub(super) struct Note<'t> {
    /// The byte range of the message in the text.
    pub(super) span: Range<usize>,
    pub(super) is_response: bool,
    pub(super) run_id: Option<Cow<'t, str>>,
    pub(super) conversation_id: Option<Cow<'t, str>>,
    pub(super) model_name: Option<Cow<'t, str>>,
    pub(super) provider_name: Option<Cow<'t, str>>,
    /// The original text of its timestamp, or of its first part's that has one.
    pub(super) instant: Option<Cow<'t, str>>,
    /// Whether it contains a user prompt.
    pub(super) prompts: bool,
    /// Whether it answers calls of an earlier response.
    pub(super) answers: bool,
    /// Whether it contains only system prompts.
    pub(super) is_void: bool,
}

/// Reads a history; linear in the text, of which nothing is copied.
pub(super) fn notes<'t>(text: &'t str, limits: &Limits) -> Result<Vec<Note<'t>>, PydanticAiError> {
    let mut scanner = Scanner::new(text, limits)?;
    let found = scanner.peek()?;
    if found != Shape::Array {
        // What is no JSON is told as such.
        scanner.skip()?;
        scanner.finish()?;
        let found = found.name();
        return Err(PydanticAiError::NotAList { found });
    }
    let mut notes = Vec::with_capacity(text.len() / 2048);
    let mut reader = Reader {
        text,
        members: Vec::with_capacity(32),
        usage: None,
        parts: Parts::default(),
    };
    scanner.array(|scanner, _| {
        notes.push(reader.message(scanner)?);
        Ok::<(), PydanticAiError>(())
    })?;
    scanner.finish()?;
    Ok(notes)
}

struct Reader<'t> {
    text: &'t str,
    /// The known members of the message, and their indexes in its table.
    members: Vec<(usize, Member<'t>)>,
    /// The members of `usage`, which nearly every response has.
    usage: Option<Vec<Member<'t>>>,
    parts: Parts<'t>,
}

/// The properties of a message's parts.
#[derive(Default)]
struct Parts<'t> {
    members: Vec<Member<'t>>,
    is_read: bool,
    n: usize,
    n_system: usize,
    prompts: bool,
    answers: bool,
    instant: Option<Cow<'t, str>>,
    /// The first part of each side: its place and kind.
    of_request: Option<(usize, Cow<'t, str>)>,
    of_response: Option<(usize, Cow<'t, str>)>,
}

impl<'t> Parts<'t> {
    fn clear(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        *self = Self {
            members,
            ..Self::default()
        };
    }

    fn read(&mut self, text: &'t str, scanner: &mut Scanner<'t>) -> Result<(), PydanticAiError> {
        if scanner.peek()? != Shape::Array {
            return Err(not_a_message());
        }
        self.is_read = true;
        scanner.array(|scanner, place| {
            let found = scanner.peek()?;
            if found != Shape::Object {
                return Err(refused("a part, which is an object", found.name()));
            }
            self.members.clear();
            scanner.members(&mut self.members)?;
            let note = check::part(text, &self.members)?;
            self.note(place, note);
            Ok(())
        })?;
        Ok(())
    }

    fn note(&mut self, place: usize, part: PartNote<'t>) {
        self.n += 1;
        match &*part.kind {
            "system-prompt" => self.n_system += 1,
            "user-prompt" => self.prompts = true,
            "tool-return" | "retry-prompt" | "retry-feedback" => self.answers = true,
            _ => {}
        }
        if self.instant.is_none() {
            self.instant = part.instant;
        }
        let slot = match part.side {
            Side::Request => &mut self.of_request,
            Side::Response => &mut self.of_response,
            Side::Either => return,
        };
        slot.get_or_insert((place, part.kind));
    }
}

fn not_a_message() -> PydanticAiError {
    PydanticAiError::NotAMessage {
        pointer: String::new(),
    }
}

impl<'t> Reader<'t> {
    fn message(&mut self, scanner: &mut Scanner<'t>) -> Result<Note<'t>, PydanticAiError> {
        if scanner.peek()? != Shape::Object {
            return Err(not_a_message());
        }
        let Self {
            text,
            members,
            usage,
            parts,
        } = self;
        let text: &'t str = text;
        members.clear();
        parts.clear();
        let mut spare = usage.take().unwrap_or_default();
        spare.clear();
        let mut spare = Some(spare);
        let mut from = 0;
        // A list of parts that is no list makes it no message, wherever in it that is found.
        let mut is_list = true;
        let span = scanner.object(|scanner, key| {
            match MESSAGE.index_of(key, from) {
                Some(0) if scanner.peek()? == Shape::Array => parts.read(text, scanner)?,
                Some(0) => {
                    is_list = false;
                    scanner.skip()?;
                }
                Some(1) if scanner.peek()? == Shape::Object => {
                    let mut found = spare.take().unwrap_or_default();
                    scanner.members(&mut found)?;
                    *usage = Some(found);
                }
                Some(place) => {
                    from = place + 1;
                    let (shape, span) = (scanner.peek()?, scanner.skip()?);
                    let key = Cow::Borrowed(MESSAGE.fields.get(place).map_or("", |f| f.name));
                    members.push((place, Member { key, shape, span }));
                }
                None => {
                    scanner.skip()?;
                }
            }
            Ok::<(), PydanticAiError>(())
        })?;
        if !is_list || !parts.is_read {
            return Err(not_a_message());
        }
        let note = Note {
            span,
            ..Note::default()
        };
        self.check(note)
    }

    /// Checks a message by its members; its kind determines which are known.
    fn check(&mut self, mut note: Note<'t>) -> Result<Note<'t>, PydanticAiError> {
        let kind = self.members.iter().find(|(_, member)| member.key == "kind");
        let kind = kind.and_then(|(_, member)| check::string(self.text, member));
        note.is_response = match kind.as_deref() {
            Some("request") => false,
            Some("response") => true,
            _ => return Err(not_a_message()),
        };
        let foreign: &[&str] = if note.is_response {
            &OF_REQUESTS
        } else {
            &OF_RESPONSES
        };
        for (place, member) in &self.members {
            let Some(field) = MESSAGE.fields.get(*place) else {
                continue;
            };
            let is_null = member.shape == Shape::Null;
            if is_null && field.of.takes(Shape::Null) || foreign.contains(&field.name) {
                continue;
            }
            let judged = check::value(field.of, self.text, member);
            judged.map_err(|error| error.within(Step::Key(field.name)))?;
            let slot = match field.name {
                "run_id" => &mut note.run_id,
                "conversation_id" => &mut note.conversation_id,
                "model_name" => &mut note.model_name,
                "provider_name" => &mut note.provider_name,
                "timestamp" => &mut note.instant,
                _ => continue,
            };
            *slot = check::string(self.text, member);
        }
        if let Some(usage) = self.usage.as_ref().filter(|_| note.is_response) {
            let judged = check::object(&USAGE, self.text, usage);
            judged.map_err(|error| error.within(Step::Key("usage")))?;
        }
        let parts = &mut self.parts;
        let (wrong, side) = if note.is_response {
            (parts.of_request.take(), "a part of a response")
        } else {
            (parts.of_response.take(), "a part of a request")
        };
        if let Some((place, kind)) = wrong {
            let error = refused(side, format!("a part of kind {kind:?}"));
            return Err(error.within(Step::Index(place)).within(Step::Key("parts")));
        }
        note.instant = note.instant.take().or_else(|| parts.instant.take());
        note.prompts = !note.is_response && parts.prompts;
        note.answers = parts.answers;
        note.is_void = parts.n > 0 && parts.n == parts.n_system;
        Ok(note)
    }
}
