//! The parts of a book for programs: `llms.txt`, and the Markdown of each page.

use crate::links::{SUMMARY, resolve};
use crate::markdown::{self, Kind, shown};
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Adds the files to a book in `folder`.
pub(crate) fn add(root: &Path, folder: &Path) -> Result<String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let parts = parts(&read(SUMMARY)?);
    let mut pages = Vec::new();
    for page in parts.iter().flat_map(|part| &part.pages) {
        let text = read(&format!("docs/{}", page.file))?;
        let copy = folder.join(&page.file);
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        fs::write(&copy, &text).with_context(|| copy.display().to_string())?;
        pages.push(description(&text));
    }
    let list = folder.join("llms.txt");
    fs::write(&list, llms(&parts, &pages)).with_context(|| list.display().to_string())?;
    Ok(format!("book: llms.txt and {} pages\n", pages.len()))
}

/// A part of the book: a heading of the table of contents and its pages.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    title: String,
    pages: Vec<Page>,
}

#[derive(Debug, PartialEq, Eq)]
struct Page {
    title: String,
    /// Its path from `docs`.
    file: String,
}

fn parts(summary: &str) -> Vec<Part> {
    let sections = markdown::sections(summary).into_iter();
    sections
        .map(|(title, links)| Part {
            title,
            pages: links.into_iter().filter_map(page).collect(),
        })
        .collect()
}

fn page(link: markdown::Link) -> Option<Page> {
    let path = resolve(SUMMARY, &link.target)?;
    let file = path.strip_prefix("docs/")?.to_owned();
    Some(Page {
        title: link.text,
        file,
    })
}

/// The first sentence of a page.
fn description(text: &str) -> String {
    let pieces = markdown::pieces(text);
    let first = pieces.iter().find(|it| it.kind == Kind::Text);
    let Some(first) = first else {
        return String::new();
    };
    let is_end = |text: &str| text.ends_with(['.', ':', '?', '!']);
    let end = first.tokens.iter().position(|it| is_end(&it.text));
    let n_tokens = end.map_or(first.tokens.len(), |at| at + 1);
    let text = shown(&first.tokens[..n_tokens]);
    text.trim_end_matches([':', '.']).to_owned()
}

/// The list of pages, in the order of the table of contents.
fn llms(parts: &[Part], descriptions: &[String]) -> String {
    let mut out = String::from("# Loomline\n");
    let mut descriptions = descriptions.iter();
    for part in parts {
        // Writing to a string can't fail.
        let _ = match part.title.as_str() {
            "" | "Summary" => writeln!(out),
            title => writeln!(out, "\n## {title}\n"),
        };
        for page in &part.pages {
            let _ = write!(out, "- [{}]({})", page.title, page.file);
            let _ = match descriptions.next().map_or("", String::as_str) {
                "" => writeln!(out),
                text => writeln!(out, ": {text}"),
            };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_parts_pages_and_descriptions() {
        let parts = parts("# Summary\n\n[Start](index.md)\n\n# Guides\n\n- [A](guides/a.md)\n");
        let descriptions = ["Begin here".to_owned(), String::new()];
        let expected =
            "# Loomline\n\n- [Start](index.md): Begin here\n\n## Guides\n\n- [A](guides/a.md)\n";
        assert_eq!(llms(&parts, &descriptions), expected);
    }

    #[test]
    fn a_description_is_the_first_sentence_of_a_page() {
        let text = "<!-- a -->\n# B\n\nRun `c`\non [d](e.md). F.\n";
        assert_eq!(description(text), "Run `c` on d");
        assert_eq!(description("# A\n"), "");
    }

    #[test]
    fn a_book_gets_the_markdown_of_its_pages() {
        let root = std::env::temp_dir().join(format!("xtask-book-{}", std::process::id()));
        let book = root.join("target/book");
        fs::create_dir_all(root.join("docs/guides")).unwrap();
        fs::create_dir_all(&book).unwrap();
        fs::write(root.join(SUMMARY), "# Summary\n\n- [A](guides/a.md)\n").unwrap();
        fs::write(root.join("docs/guides/a.md"), "# A\n\nB.\n").unwrap();
        add(&root, &book).unwrap();
        let read = |file: &str| fs::read_to_string(book.join(file)).unwrap();
        assert_eq!(read("guides/a.md"), "# A\n\nB.\n");
        assert_eq!(read("llms.txt"), "# Loomline\n\n- [A](guides/a.md): B\n");
        fs::remove_dir_all(root).unwrap();
    }
}
