//! The page that another site shows in a frame.

use crate::assets::{Assets, MODULES};
use maud::{DOCTYPE, Markup, html};

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
        let assets = self.assets;
        html! {
            (DOCTYPE)
            html lang="en" data-embed-origins=(self.origins.join(" ")) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content";
                    meta name="color-scheme" content="light dark";
                    title { (self.name) }
                    link rel="stylesheet" href=(assets.path("style.css"));
                    @for module in MODULES.iter().chain(&["bearer.js", "page.js"]) { link rel="modulepreload" href=(assets.path(module)); }
                    script type="module" src=(assets.path("embedded.js")) {}
                }
                body class="embed" {
                    div id="offline" class="banner" role="status" hidden {}
                    div class="page" id="embedded" data-agent=(self.agent) data-thread=(self.thread) {}
                    p id="say" class="hidden" role="status" aria-live="polite" {}
                    dialog id="ask" aria-labelledby="ask-title" {
                        form method="dialog" {
                            h2 id="ask-title" { "Open this address?" }
                            p class="address" id="ask-address" {}
                            div class="buttons" {
                                button value="open" { "Open in a new tab" }
                                button value="cancel" { "Cancel" }
                            }
                        }
                    }
                }
            }
        }
    }
}
