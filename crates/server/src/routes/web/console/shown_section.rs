//! The thread of a page of the console.

use crate::error::ApiError;
use crate::routes::web::pages::PageParts;
use crate::threads::{ThreadKey, ThreadRef};
use web::{ConsoleFrame, ConsoleSection, ThreadSection};

/// A thread, and the section of it that a page shows.
pub(super) struct ShownSection {
    /// The thread.
    pub(super) thread: ThreadRef,
    section: ThreadSection,
    title: String,
    api_path: String,
}

impl ShownSection {
    /// Finds the thread. `name` is the section in the title of the page, `resource` the end of the path of
    /// the native route with the same data.
    pub(super) async fn find(
        thread: &ThreadKey,
        section: ThreadSection,
        (name, resource): (&str, &str),
    ) -> Result<Self, ApiError> {
        let found = thread.find().await?;
        let title = found.row().thread.title.as_deref();
        Ok(Self {
            title: format!("{name} · {}", title.unwrap_or(thread.key())),
            api_path: format!(
                "/api/v1/threads/{}/{resource}",
                web::path_segment(thread.key())
            ),
            section,
            thread: found,
        })
    }

    /// The frame of the page.
    pub(super) fn frame<'a>(&'a self, parts: &'a PageParts) -> ConsoleFrame<'a> {
        let place = ConsoleSection::Thread {
            key: self.thread.key(),
            title: self.thread.row().thread.title.as_deref(),
            section: self.section,
        };
        parts.console(&self.title, place, Some(&self.api_path))
    }
}
