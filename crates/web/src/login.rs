//! The log-in page, and the page between a link of another site and the log-in.

use crate::assets::Assets;
use crate::json;
use crate::shell::PageHead;
use maud::{DOCTYPE, Markup, html};

/// The page on which a person logs in with a key or a token.
#[derive(Debug)]
pub struct LoginPage<'a> {
    /// The assets of the page.
    pub assets: &'a Assets,
    /// The name of the server.
    pub name: &'a str,
    /// The path that follows.
    pub to: &'a str,
    /// Why the last attempt failed.
    pub refused: Option<&'a str>,
    /// Whether the browser is going to refuse the cookie, because the connection has no TLS.
    pub needs_https: bool,
}

impl LoginPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let described = self.refused.map(|_| "login-refused login-hint");
        html! {
            (DOCTYPE)
            html lang="en" {
                (PageHead::PLAIN.html(self.assets, &format!("Log in · {}", self.name)))
                body class="plain" {
                    main class="login" {
                        h1 { "Log in to " span dir="auto" { (json::visible(self.name)) } }
                        @if self.needs_https {
                            p class="warning" { "This page came without HTTPS, so browsers won't keep the log-in. Open it with " code { "https://" } "." }
                        }
                        form method="post" action="/login" {
                            input type="hidden" name="to" value=(self.to);
                            label for="key" { "Key or token" }
                            input id="key" name="key" type="password" autocomplete="current-password" required autofocus
                                aria-describedby=(described.unwrap_or("login-hint")) aria-invalid=[self.refused.map(|_| "true")];
                            @if let Some(refused) = self.refused { p class="refused" id="login-refused" role="alert" { (refused) } }
                            p class="quiet" id="login-hint" { "The browser keeps a cookie, not the key. Log out to remove it." }
                            button type="submit" class="primary" { "Log in" }
                        }
                    }
                }
            }
        }
    }
}

/// The page that leads from a link of another site to the log-in. Browsers send no cookie with the
/// request of such a link, and send it with the next one.
#[derive(Debug)]
pub struct ContinuePage<'a> {
    /// The assets of the page.
    pub assets: &'a Assets,
    /// The path that follows.
    pub path: &'a str,
}

impl ContinuePage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="refresh" content={ "0; url=" (self.path) };
                    title { "Continue" }
                    link rel="icon" href=(self.assets.path("icon.svg"));
                    link rel="stylesheet" href=(self.assets.path("style.css"));
                }
                body class="plain" {
                    main class="login" {
                        h1 { "You came from another site" }
                        p { a href=(self.path) { "Continue" } }
                    }
                }
            }
        }
    }
}
