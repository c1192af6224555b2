//! How to reach a thread through each protocol.

use super::frame::ConsoleFrame;
use super::protocols::{CodeSample, ConnectTarget, ProtocolAccess};
use crate::json;
use maud::{Markup, html};

/// The page of the ways to reach a thread.
#[derive(Debug)]
pub struct ConnectPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The thread and the server.
    pub target: ConnectTarget<'a>,
}

impl ConnectPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let all = self.target.protocols();
        self.frame.html(&html! {
            p {
                "Each protocol reads and writes this same thread."
                @if self.target.needs_key {
                    " The samples take your key from the variable " code { "LOOMLINE_KEY" } ". Never put a key into a web page: let the page call your own server."
                }
            }
            @for (index, protocol) in all.iter().enumerate() { (protocol.html(index)) }
        })
    }
}

impl ProtocolAccess {
    fn html(&self, index: usize) -> Markup {
        let id = format!("protocol-{index}");
        html! {
            section aria-labelledby=(id) {
                h2 id=(id) { (self.name) }
                p { "Address " code { (json::visible(&self.address)) } }
                @if let Some(note) = &self.note { p class="quiet" { (json::visible(note)) } }
                @for sample in &self.samples { (sample.html(self.name)) }
            }
        }
    }
}

impl CodeSample {
    fn html(&self, protocol: &str) -> Markup {
        html! {
            figure class="snippet" {
                figcaption {
                    span { (self.title) }
                    button type="button" class="copy" { "Copy" span class="hidden" { " the sample: " (protocol) ", " (self.title) } }
                }
                pre tabindex="0" dir="ltr" { code { (json::visible(&self.code)) } }
            }
        }
    }
}
