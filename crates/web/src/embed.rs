//! The page that another site shows in a frame.

use crate::assets::Assets;
use crate::shell::{PageHead, overlays};
use maud::{DOCTYPE, Markup, html};

/// Its script starts the page's script when it has a token.
const HEAD: PageHead = PageHead {
    styles: &["style.css"],
    preloaded: &["bearer.js", "page.js"],
    scripts: &["embedded.js"],
};

/// The page of a thread within another site. It has no content before its script has a token.
#[derive(Debug)]
pub struct EmbedPage<'a> {
    /// The assets of the page.
    pub assets: &'a Assets,
    /// The name of the server.
    pub name: &'a str,
    /// The agent that answers.
    pub agent: &'a str,
    /// The key of the thread.
    pub thread: &'a str,
    /// The origins of the sites that may show the page and hand over a token.
    pub origins: &'a [String],
}

impl EmbedPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" data-embed-origins=(self.origins.join(" ")) {
                (HEAD.html(self.assets, self.name))
                body class="embed" {
                    div class="page" id="embedded" data-agent=(self.agent) data-thread=(self.thread) {}
                    (overlays())
                }
            }
        }
    }
}
