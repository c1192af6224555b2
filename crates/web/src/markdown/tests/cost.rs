//! The work of a stream is linear in the length of its text.

use crate::Patch;
use crate::markdown::{MarkdownStream, render};

/// Texts of about `n` bytes, of many shapes.
fn shapes(n: usize) -> Vec<(&'static str, String)> {
    let fill = |piece: &str| piece.repeat(n / piece.len());
    let half = |piece: &str, after: &str| fill(piece)[..n / 2].to_owned() + &fill(after)[..n / 2];
    vec![
        ("blocks", fill("Some words here, and *more* of them.\n\n")),
        (
            "answer",
            fill(
                "# A\n\nSome words.\n\n- b\n- c\n\n```rust\nlet d = 1;\n```\n\n| e |\n|---|\n| f |\n\n",
            ),
        ),
        ("one block", fill("some words\n")),
        ("one line", fill("some words ")),
        ("one word", fill("a")),
        (
            "fence",
            "```rust\n".to_owned() + &fill("let a = \"b\"; // c\n\n"),
        ),
        (
            "line in a fence",
            "```rust\n".to_owned() + &fill("let a = \"b\"; "),
        ),
        ("list", fill("- a\n\n")),
        (
            "table",
            "| a | b |\n|---|---|\n".to_owned() + &fill("| c | d |\n"),
        ),
        ("wide table", half("|a", "|-") + "\n" + &fill("a\n")),
        ("quotes", fill(">")),
        ("quotes and lines", half(">", "\na")),
        ("lists", fill("- ")),
        ("lists and lines", half("- ", "\na")),
        (
            "lists and a fence",
            half("- ", "\n").replacen('\n', "```\n", 1),
        ),
        (
            "nested list",
            (0..n / 64).fold(String::new(), |text, i| {
                text + &" ".repeat(i % 60 * 2) + "- a\n"
            }),
        ),
        ("brackets", fill("[")),
        ("closed brackets", half("[", "]")),
        ("links", fill("[a](https://x.example) ")),
        ("open links", fill("[a](")),
        ("images", fill("![")),
        ("stars", fill("*a **b ")),
        ("ticks", fill("`a``b")),
        ("html", fill("<div>\n\n")),
        ("comments", fill("a <!-- ")),
        ("definitions", fill("[a]: b\n\n")),
        ("backslashes", fill("\\")),
        ("blank lines", fill("\n")),
        ("hidden", fill("\u{202e}")),
    ]
}

/// Streams a text in pieces of about 5 bytes: the bytes parsed, and those of the patches.
fn cost(text: &str) -> (usize, usize) {
    let (mut stream, mut out) = (MarkdownStream::new("m", 2), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(5));
        stream.push(piece, &mut out);
        rest = after;
    }
    stream.finish(&mut out);
    let bytes = |patch: &Patch| match patch {
        Patch::Put { html, .. } | Patch::Before { html, .. } => html.len(),
        Patch::Text { text, .. } => text.len(),
        Patch::Append { .. }
        | Patch::Drop { .. }
        | Patch::Mark { .. }
        | Patch::Status { .. }
        | Patch::Reload => 0,
    };
    (stream.parsed, out.iter().map(bytes).sum())
}

#[test]
fn a_text_of_twice_the_length_is_parsed_twice_as_long() {
    for ((name, short), (_, long)) in shapes(5_000).into_iter().zip(shapes(10_000)) {
        let (a, b) = (cost(&short).0, cost(&long).0);
        // The second text is not always of exactly twice the length.
        let is_linear = b * short.len() * 10 < a * long.len() * 11;
        assert!(is_linear, "{name}: {a} bytes parsed, then {b}");
        assert!(a < short.len() * 30, "{name}: {a} bytes parsed");
    }
}

#[test]
fn the_html_of_a_text_is_not_many_times_its_length() {
    for (name, text) in shapes(6_000) {
        let html = render(&text, 2).len();
        assert!(
            html < text.len() * 25,
            "{name}: {html} bytes of {}",
            text.len()
        );
    }
}
