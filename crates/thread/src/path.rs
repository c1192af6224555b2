//! Positions in a document, rendered as a JSON Pointer (RFC 6901) on demand.

/// One step down from a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into the member of an object.
    Key(&'a str),
    /// Into the element of an array.
    Index(usize),
}

/// A position in a document, linked to the one above it so that a walk allocates nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    above: Option<(&'a Path<'a>, Step<'a>)>,
}

impl<'a> Path<'a> {
    /// The root of the document.
    pub(crate) const ROOT: Path<'static> = Path { above: None };

    /// The member `key` of the object here.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            above: Some((self, Step::Key(key))),
        }
    }

    /// The element `index` of the array here.
    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path {
            above: Some((self, Step::Index(index))),
        }
    }

    /// The JSON Pointer of this place.
    pub(crate) fn to_pointer(self) -> String {
        let mut steps = Vec::new();
        let mut here = &self;
        while let Some((above, step)) = &here.above {
            steps.push(*step);
            here = above;
        }
        steps.reverse();
        pointer(steps)
    }
}

/// Writes steps from the root as a JSON Pointer.
pub fn pointer<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> String {
    let mut text = String::new();
    for step in steps {
        text.push('/');
        match step {
            Step::Index(index) => text.push_str(&index.to_string()),
            Step::Key(key) => {
                for char in key.chars() {
                    match char {
                        '~' => text.push_str("~0"),
                        '/' => text.push_str("~1"),
                        _ => text.push(char),
                    }
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilde_and_slash_are_escaped_in_a_pointer() {
        let agents = Path::ROOT.key("agents");
        let agent = agents.key("a/b~c");
        assert_eq!(agent.index(3).to_pointer(), "/agents/a~1b~0c/3");
        assert_eq!(Path::ROOT.to_pointer(), "");
    }
}
