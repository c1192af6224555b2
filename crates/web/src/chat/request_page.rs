//! The page of an answer that was refused, for browsers without the page's script.

use crate::form_field::FilledForm;
use crate::link::chat_path;
use crate::requests::CapabilityRequest;
use crate::shell::Shell;
use maud::{Markup, html};

/// The page of a request whose answer has errors.
#[derive(Debug)]
pub struct RequestPage<'a> {
    /// The frame of the page.
    pub shell: Shell<'a>,
    /// The request.
    pub request: &'a CapabilityRequest,
    /// The form as the person filled it in, and its errors.
    pub filled: &'a FilledForm,
}

impl RequestPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let chat = chat_path(&self.request.thread_key);
        self.shell.html(&html! {
            header class="top" { h1 { "The answer has errors" } span class="grow" {} a href=(chat) { "Back to the thread" } }
            main id="log" class="log" tabindex="0" { (self.request.html_with(self.filled)) }
        })
    }
}
