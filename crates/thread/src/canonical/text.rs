//! The hash of a text that is read turn by turn and never built whole.

use super::nulls::At;
use super::write::{Writer, by_utf_16};
use super::{CanonicalError, CanonicalOptions, ContentHash, Hasher, InexactNumbers};
use crate::document::{Thread, Version};
use crate::json::{DecodeError, Json, Limits, Member, Object, Scanner, Shape, Step};
use std::ops::Range;

/// The hash of a document's text, and the numbers that make it inexact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedText {
    /// The content hash.
    pub hash: ContentHash,
    /// The numbers that the canonical form rounds, if there are any.
    pub inexact: Option<InexactNumbers>,
}

/// The content hash of a document's text; equals that of [`hash`](super::hash()).
///
/// In addition to the text, it needs memory for one member of the root, or for one turn of the
/// `turns`.
///
/// ```
/// use loomline_thread::canonical::{hash, hash_text};
/// use loomline_thread::{CanonicalOptions, Limits, Thread};
///
/// let text = r#"{"version":"0.0.4","turns":[{"turn_type":"user"}],"b":1.0}"#;
/// let options = CanonicalOptions::default();
/// let hashed = hash_text(text, &Limits::default(), options)??;
/// assert_eq!(hashed.hash, hash(&Thread::decode(text)?, options)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hash_text(
    text: &str,
    limits: &Limits,
    options: CanonicalOptions,
) -> Result<Result<HashedText, CanonicalError>, DecodeError> {
    let Some(mut members) = members(text, limits) else {
        // The parser says best what is wrong.
        let document = Thread::decode_with(text, limits)?;
        return Ok(super::hash(&document, options).map(|hash| HashedText {
            hash,
            inexact: super::inexact_numbers(&document),
        }));
    };
    members.sort_unstable_by(|a, b| by_utf_16(&a.key, &b.key));
    let hashing = Hashing {
        text,
        limits,
        inexact: None,
    };
    Ok(hashing.hash(&members, options))
}

/// The members of the root, with all values checked; `None` if the text is not a document.
fn members<'t>(text: &'t str, limits: &Limits) -> Option<Vec<Member<'t>>> {
    let mut scanner = Scanner::new(text, limits).ok()?;
    if scanner.peek().ok()? != Shape::Object {
        return None;
    }
    let mut members = Vec::new();
    scanner.members(&mut members).ok()?;
    scanner.finish().ok()?;
    Some(members)
}

struct Hashing<'t> {
    text: &'t str,
    limits: &'t Limits,
    inexact: Option<InexactNumbers>,
}

impl Hashing<'_> {
    fn hash(
        mut self,
        members: &[Member<'_>],
        options: CanonicalOptions,
    ) -> Result<HashedText, CanonicalError> {
        let version = members.iter().find(|it| it.key == "version");
        let version = version.map(|it| self.built(it.span.clone()));
        let version = version.as_ref().and_then(Json::as_str);
        let version = version.map_or(Version::NEWEST, Version::from);
        let mut hasher = Hasher::default();
        let mut out = Writer::new(&mut hasher, options, version);
        out.put("{")?;
        let mut is_first = true;
        // No tag of the root decides what its members are.
        let root = Object::new();
        for member in members {
            let at = At::Root.member(&root, &member.key);
            if at == At::Turns && member.shape == Shape::Array {
                begin(&mut out, &mut is_first, &member.key)?;
                out.put("[")?;
                for (place, span) in self.elements(member.span.clone()).into_iter().enumerate() {
                    let turn = self.built(span);
                    let steps = [Step::Key(&member.key), Step::Index(place)];
                    InexactNumbers::add(&mut self.inexact, &steps, &turn);
                    if place > 0 {
                        out.put(",")?;
                    }
                    out.value(&turn, at.element())?;
                }
                out.put("]")?;
                continue;
            }
            let value = self.built(member.span.clone());
            if value.is_null() && At::Root.optional(&root).contains(&&*member.key) {
                continue;
            }
            InexactNumbers::add(&mut self.inexact, &[Step::Key(&member.key)], &value);
            begin(&mut out, &mut is_first, &member.key)?;
            out.value(&value, at)?;
        }
        out.put("}")?;
        Ok(HashedText {
            hash: hasher.hash(),
            inexact: self.inexact,
        })
    }

    /// The byte ranges of an array's elements.
    fn elements(&self, span: Range<usize>) -> Vec<Range<usize>> {
        let mut elements = Vec::new();
        let array = self.text.get(span.clone()).unwrap_or_default();
        // It was checked as a part of the whole.
        if let Ok(mut scanner) = Scanner::new(array, self.limits) {
            let walked = scanner.array(|scanner, _| {
                let element = scanner.skip()?;
                elements.push(span.start + element.start..span.start + element.end);
                Ok::<(), DecodeError>(())
            });
            debug_assert!(walked.is_ok(), "what was checked can be walked");
        }
        elements
    }

    fn built(&self, span: Range<usize>) -> Json {
        let text = self.text.get(span).unwrap_or_default();
        Json::parse_with(text, self.limits).unwrap_or_default()
    }
}

fn begin<W: std::fmt::Write>(
    out: &mut Writer<'_, W>,
    is_first: &mut bool,
    key: &str,
) -> Result<(), CanonicalError> {
    if !std::mem::take(is_first) {
        out.put(",")?;
    }
    out.key(key)
}
