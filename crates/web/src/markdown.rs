//! Markdown as HTML, whole or while it is written.
