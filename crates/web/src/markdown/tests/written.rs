//! What the writer writes.

use super::documents::{AWKWARD, Dice};
use super::scan::check;
use crate::markdown::{MarkdownStream, render};
use proptest::prelude::*;

/// The text that a reader sees.
fn text(html: &str) -> String {
    let pieces = html
        .split('<')
        .map(|it| it.split_once('>').map_or(it, |(_, text)| text));
    let text: Vec<&str> = pieces.collect();
    text.join(" ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[test]
fn every_document_is_written_with_known_elements() {
    let mut dice = Dice::new(2);
    let random: Vec<String> = (0..3_000).map(|_| dice.document()).collect();
    for source in AWKWARD
        .iter()
        .copied()
        .chain(random.iter().map(String::as_str))
    {
        check(&render(source, 2));
        let mut stream = MarkdownStream::new("m", 2);
        stream.push(source, &mut Vec::new());
        stream.push(" ", &mut Vec::new());
        check(&stream.html());
    }
}

#[test]
fn a_heading_is_at_most_one_level_below_the_last() {
    let headings = |source, base| {
        let html = render(source, base);
        let levels = html
            .match_indices("<h")
            .map(|(at, _)| html[at + 2..=at + 2].to_owned());
        levels.collect::<String>()
    };
    assert_eq!(headings("# a\n## b\n### c\n# d", 2), "3453");
    assert_eq!(headings("### a\n# b\n#### c\n## d\n## e", 2), "33444");
    assert_eq!(headings("# a\n## b\n### c\n#### d\n##### e", 3), "45666");
    assert_eq!(headings("# a", 0), "1");
    assert_eq!(headings("# a", 255), "6");
}

#[test]
fn blocks_are_written_with_their_direction() {
    for (source, html) in [
        ("a\nb  \nc", "<p dir=\"auto\">a\nb<br>c</p>"),
        (
            "> a",
            r#"<blockquote dir="auto"><p dir="auto">a</p></blockquote>"#,
        ),
        (
            "3. a",
            r#"<ol dir="auto" start="3"><li dir="auto">a</li></ol>"#,
        ),
        (
            "- [x] a\n- [ ] b",
            r#"<ul dir="auto"><li dir="auto">☑ a</li><li dir="auto">☐ b</li></ul>"#,
        ),
        (
            "*a* **b** ~~c~~ `d`",
            r#"<p dir="auto"><em>a</em> <strong>b</strong> <del>c</del> <code>d</code></p>"#,
        ),
        ("a <b>c</b>", r#"<p dir="auto">a &lt;b&gt;c&lt;/b&gt;</p>"#),
        ("<b>\nc", "<p class=\"raw\" dir=\"auto\">&lt;b&gt;\nc</p>"),
        ("***", "<hr>"),
        (
            "    a\n",
            "<pre tabindex=\"0\" dir=\"auto\"><code>a\n</code></pre>",
        ),
        (
            "~~~\na\n\nb",
            "<pre tabindex=\"0\" dir=\"auto\"><code>a\n\nb</code></pre>",
        ),
    ] {
        assert_eq!(render(source, 2), html, "{source:?}");
    }
}

#[test]
fn a_table_is_a_region_that_scrolls() {
    let html = render("| a | b |\n|:-:|--:|\n| c |\n| d | e | f |", 2);
    assert_eq!(
        html,
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table><thead><tr>\
         <th class=\"center\" dir=\"auto\">a</th><th class=\"right\" dir=\"auto\">b</th></tr></thead>\
         <tbody><tr><td class=\"center\" dir=\"auto\">c</td></tr><tr>\
         <td class=\"center\" dir=\"auto\">d</td><td class=\"right\" dir=\"auto\">e</td>\
         <td dir=\"auto\">f</td></tr></tbody></table></div>"
    );
}

#[test]
fn deep_nesting_does_not_reach_the_page() {
    for source in [
        ">".repeat(150),
        "- ".repeat(90) + "a",
        "**a *b ".repeat(200) + &"c* d**".repeat(200),
    ] {
        let html = render(&source, 2);
        check(&html);
        let mut depth = 0_usize;
        for tag in html.split('<').skip(1) {
            depth = if tag.starts_with('/') {
                depth - 1
            } else {
                depth + 1
            };
            assert!(depth <= 130);
        }
    }
    let deep = "a\n\n".to_owned() + &">".repeat(300) + " b";
    assert_eq!(render(&deep, 2).matches('<').count(), 2);
    // Neither a rule nor a number begins quotes and lists.
    assert!(
        render(
            &("# a\n\n".to_owned() + &"-".repeat(300) + "\n" + &"1".repeat(300)),
            2
        )
        .starts_with("<h3")
    );
}

/// The classes and texts of the spans in a line of code.
fn spans(language: &str, code: &str) -> String {
    let html = render(&format!("~~~~{language}\n{code}\n~~~~"), 2);
    check(&html);
    let spans = html.split(r#"<span class=""#).skip(1);
    let spans = spans.map(|it| {
        it.split("</span>")
            .next()
            .expect("a span")
            .replace("\">", ":")
    });
    let spans = spans.collect::<Vec<_>>().join(" ");
    spans
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
}

#[test]
fn code_is_highlighted_by_its_language() {
    for (language, code, expected) in [
        ("rust", "let a: &'a str = 'b'; // c", "k:let s:'b' c:// c"),
        (
            "rs",
            "r#\"a\"b\"# /* c\n d */ 1_000u8",
            "s:r#\"a\"b\"# c:/* c c: d */ n:1_000u8",
        ),
        ("Python", "'''a\nb''' def", "s:'''a s:b''' k:def"),
        (
            "ts",
            "const a = `b\n\\`c` + 0x1f",
            "k:const s:`b s:\\`c` n:0x1f",
        ),
        (
            "json",
            "{\"a\\\"\": 1.5, b: null}",
            "s:\"a\\\"\" n:1.5 k:null",
        ),
        ("bash", "if a#b; # c\n'd", "k:if c:# c s:'d"),
        (
            "sql",
            "select 'a' FROM b -- c",
            "k:select s:'a' k:FROM c:-- c",
        ),
        ("toml", "a = true # b", "k:true c:# b"),
        ("yaml", "a: don't # b", "c:# b"),
        (
            "go",
            "func a() { return `b\nc` }",
            "k:func k:return s:`b s:c`",
        ),
        ("java", "class A { /* b", "k:class c:/* b"),
        ("c++", "int a = 0;", "k:int n:0"),
        (
            "html",
            "<a-b c=\"d\"> it's </a-b><!-- e",
            "k:a-b s:\"d\" k:a-b c:<!-- e",
        ),
        (
            "css",
            "@media a { width: 10px } /* b */",
            "k:@media n:10px c:/* b */",
        ),
        ("diff", "+a\n-b\n@@ c\n d", "s:+a k:-b c:@@ c"),
        ("dockerfile", "FROM a # b", "k:FROM c:# b"),
        ("unknown", "let a = 1", ""),
        ("", "let a = 1", ""),
    ] {
        assert_eq!(spans(language, code), expected, "{language}");
    }
}

#[test]
fn the_language_of_a_fence_is_a_safe_class() {
    let class = |info: &str| {
        let html = render(&format!("~~~{info}\n~~~"), 2);
        html.split('"')
            .find_map(|it| it.strip_prefix("language-").map(str::to_owned))
    };
    assert_eq!(class(" C++,ignore"), Some("c++".into()));
    assert_eq!(class("rust title=\"a\""), Some("rust".into()));
    assert_eq!(class("a\"b"), None);
    assert_eq!(class(&"a".repeat(33)), None);
}

#[test]
fn a_very_long_line_of_code_is_plain() {
    let code = "1 ".repeat(40_000);
    assert_eq!(spans("rust", &format!("{code}\n2")), "n:2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_word_of_a_text_is_lost(
        words in prop::collection::vec("[a-z]{6,9}", 1..30),
        marks in prop::collection::vec(0_usize..17, 30),
    ) {
        const MARKS: [&str; 17] = [
            " ", "\n", "\n\n", "\n\n- ", "\n\n> ", " *", "** ", " `", "\n\n# ", " | ", "|\n|---|\n|", "<", ">",
            "\n\n```\n", "\n\n    ", " [", "](",
        ];
        let pairs = words.iter().zip(&marks);
        let source: String = pairs.flat_map(|(word, mark)| [word.as_str(), MARKS[*mark]]).collect();
        let seen = text(&render(&source, 2));
        for word in &words {
            prop_assert!(seen.contains(word), "{word} of {source:?} in {seen:?}");
        }
    }
}
