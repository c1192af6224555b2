//! The marker with the author of a text, and its removal from models' texts (ruling 17).

/// The marker before another agent's text (2.0.0 "`prefixAgentNameToParts`").
pub(super) fn marker(agent_name: &str) -> String {
    format!("{{agent:{agent_name}}}: ")
}

/// Removes markers of this crate, `{agent:NAME}: `, from the start of a model's text.
///
/// Models imitate the markers they see and then sign for themselves or for others. Only the names
/// in `names`, those of registered agents, form a marker. Repeated markers are all removed, and the
/// space may be missing. A marker further on in the text stays: it may be a quotation.
///
/// ```
/// use loomline_thread::render::strip_markers;
///
/// let text = "{agent:Ada}: {agent:Bo}: hello {agent:Ada}: there";
/// assert_eq!(strip_markers(text, ["Ada", "Bo"]), "hello {agent:Ada}: there");
/// assert_eq!(strip_markers("{agent:Eve}: hi", ["Ada"]), "{agent:Eve}: hi");
/// ```
#[must_use]
pub fn strip_markers<N: AsRef<str>>(text: &str, names: impl IntoIterator<Item = N>) -> &str {
    let markers = Markers::new(names);
    let mut rest = text;
    while let Start::Marker(length) = markers.start(rest, true) {
        rest = rest.get(length..).unwrap_or_default();
    }
    rest
}

/// [`strip_markers`] for a streamed text: the total output does not depend on how the text is
/// split.
///
/// It holds text back only while that may still be the start of a marker.
///
/// ```
/// use loomline_thread::render::MarkerStripper;
///
/// let mut stripper = MarkerStripper::new(["Ada"]);
/// assert_eq!(stripper.push("{age"), "");
/// assert_eq!(stripper.push("nt:Ada}: hel"), "hel");
/// assert_eq!(stripper.push("lo"), "lo");
/// assert_eq!(stripper.finish(), "");
/// ```
#[derive(Clone, Debug)]
pub struct MarkerStripper {
    markers: Markers,
    held: String,
    /// Whether the start is decided, so that all further text passes.
    passes: bool,
}

impl MarkerStripper {
    /// A stripper for one text, which removes markers with these names.
    #[must_use]
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            markers: Markers::new(names),
            held: String::new(),
            passes: false,
        }
    }

    /// Adds the next piece; returns the text that is certainly not part of a marker.
    pub fn push(&mut self, piece: &str) -> String {
        if self.passes {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        self.give(false)
    }

    /// Returns the remaining text.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.give(true)
    }

    fn give(&mut self, is_whole: bool) -> String {
        let mut from = 0;
        loop {
            let rest = self.held.get(from..).unwrap_or_default();
            match self.markers.start(rest, is_whole) {
                Start::Marker(length) => from += length,
                Start::Undecided => {
                    self.held.drain(..from);
                    return String::new();
                }
                Start::Text => {
                    self.passes = true;
                    self.held.drain(..from);
                    return std::mem::take(&mut self.held);
                }
            }
        }
    }
}

/// The start of a text.
enum Start {
    /// A marker; its length in bytes.
    Marker(usize),
    /// The beginning of a possible marker.
    Undecided,
    /// The text does not start with a marker.
    Text,
}

/// Markers without their space, longest first.
#[derive(Clone, Debug)]
struct Markers(Vec<String>);

impl Markers {
    fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let markers = names.into_iter().map(|name| marker(name.as_ref()));
        let mut markers: Vec<_> = markers.map(|marker| marker.trim_end().to_owned()).collect();
        markers.sort_by_key(|marker| std::cmp::Reverse(marker.len()));
        Self(markers)
    }

    /// Classifies the start of the text. `is_whole` means that no more text follows.
    fn start(&self, text: &str, is_whole: bool) -> Start {
        let may_become = |marker: &String| marker.len() > text.len() && marker.starts_with(text);
        if !is_whole && self.0.iter().any(may_become) {
            return Start::Undecided;
        }
        let found = self
            .0
            .iter()
            .find(|marker| text.starts_with(marker.as_str()));
        let Some(marker) = found else {
            return Start::Text;
        };
        match text.as_bytes().get(marker.len()) {
            None if !is_whole => Start::Undecided,
            Some(b' ') => Start::Marker(marker.len() + 1),
            Some(_) | None => Start::Marker(marker.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_holds_another_marker_is_taken_off_whole() {
        let names = ["A", "A}: {agent:B"];
        assert_eq!(strip_markers("{agent:A}: {agent:B}: x", names), "x");
        assert_eq!(
            strip_markers("{agent:A}: {agent:C}: x", names),
            "{agent:C}: x"
        );
    }

    #[test]
    fn a_marker_is_taken_off_only_at_the_very_start() {
        assert_eq!(strip_markers(" {agent:A}: x", ["A"]), " {agent:A}: x");
        assert_eq!(strip_markers("{agent:A}", ["A"]), "{agent:A}");
        assert_eq!(strip_markers("{agent:A}:\nx", ["A"]), "\nx");
    }

    #[test]
    fn what_is_held_back_at_the_end_comes_out() {
        let mut stripper = MarkerStripper::new(["Ada"]);
        assert_eq!(stripper.push("{agent:A"), "");
        assert_eq!(stripper.finish(), "{agent:A");
    }
}
