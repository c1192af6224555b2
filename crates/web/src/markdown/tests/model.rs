//! A simple model of the container of a page, to which patches are applied.

use crate::Patch;
use crate::markdown::text::escape;
use std::fmt::Write as _;

/// The container with the id `m`.
#[derive(Debug)]
pub(super) struct Container {
    /// The id and inner HTML of each batch.
    batches: Vec<(String, String)>,
    /// The tail element.
    tail: Option<String>,
    /// The number of times the whole was replaced.
    pub(super) n_whole: usize,
}

impl Container {
    pub(super) fn new() -> Self {
        let tail = r#"<div class="tail" id="m-t"><span id="m-x"></span></div>"#;
        Self {
            batches: Vec::new(),
            tail: Some(tail.into()),
            n_whole: 0,
        }
    }

    /// Takes the state of another container.
    pub(super) fn restore(&mut self, other: &Self) {
        self.batches.clone_from(&other.batches);
        self.tail.clone_from(&other.tail);
    }

    pub(super) fn apply(&mut self, patches: &[Patch]) {
        for patch in patches {
            match patch {
                Patch::Put { id, html } if id == "m-t" => {
                    assert!(html.starts_with(r#"<div class="tail" id="m-t">"#));
                    self.tail.as_mut().expect("a tail").clone_from(html);
                }
                Patch::Put { id, html } if id == "m" => {
                    let html = html.strip_prefix(r#"<div class="md" id="m">"#);
                    let html = html.and_then(|it| it.strip_suffix("</div>"));
                    self.batches = vec![(String::new(), html.expect("a container").into())];
                    self.tail = None;
                    self.n_whole += 1;
                }
                Patch::Before { id, html } if id == "m-t" => {
                    assert!(self.tail.is_some());
                    let html = html
                        .strip_prefix(r#"<div class="b" id=""#)
                        .expect("a batch");
                    let (id, html) = html.split_once(r#"">"#).expect("an id");
                    let html = html.strip_suffix("</div>").expect("an end");
                    self.batches.retain(|it| it.0 != id);
                    self.batches.push((id.into(), html.into()));
                }
                Patch::Text { id, text } if id == "m-x" => {
                    let tail = self.tail.as_mut().expect("a tail");
                    let open = r#"<span id="m-x">"#;
                    let from = tail.find(open).expect("an end of the text") + open.len();
                    let to = from + tail[from..].find("</span>").expect("an end tag");
                    let mut escaped = String::new();
                    escape(&mut escaped, text);
                    tail.insert_str(to, &escaped);
                }
                Patch::Drop { id } if id == "m-t" => {
                    assert!(self.tail.take().is_some());
                }
                Patch::Put { .. }
                | Patch::Before { .. }
                | Patch::Append { .. }
                | Patch::Text { .. }
                | Patch::Drop { .. }
                | Patch::Mark { .. }
                | Patch::Status { .. }
                | Patch::Reload => unreachable!("{patch:?}"),
            }
        }
    }

    /// The inner HTML.
    pub(super) fn html(&self) -> String {
        let mut out = String::new();
        for (id, html) in &self.batches {
            if id.is_empty() {
                out.push_str(html);
            } else {
                write!(out, r#"<div class="b" id="{id}">{html}</div>"#).expect("a string");
            }
        }
        out.push_str(self.tail.as_deref().unwrap_or_default());
        out
    }

    /// The inner HTML without the batches' elements.
    pub(super) fn blocks(&self) -> String {
        assert_eq!(self.tail, None);
        self.batches.iter().map(|it| it.1.as_str()).collect()
    }
}
