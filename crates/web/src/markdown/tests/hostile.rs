//! Texts that try to get an element, an attribute or a request into the page.

use super::scan::check;
use crate::markdown::{MarkdownStream, render};

const SCHEMES: [&str; 22] = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java&#115;cript:alert(1)",
    "javascript&colon;alert(1)",
    "java&Tab;script:alert(1)",
    "java&NewLine;script:alert(1)",
    "&#1;javascript:alert(1)",
    "&#x6A;avascript:alert(1)",
    "\u{a0}javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml;base64,PHN2Zz4=",
    "vbscript:msgbox(1)",
    "VB&#83;CRIPT:msgbox(1)",
    "file:///etc/passwd",
    "blob:https://x.example/1",
    "ftp://x.example",
    "//x.example/y",
    "/login",
    "#m",
    "https:x.example",
    "https:/\\x.example",
    "https:\\\\x.example",
];

const TEXTS: [&str; 30] = [
    "<script>alert(1)</script>",
    "a <script src=https://x.example></script> b",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<style>@import 'https://x.example';</style>",
    "<p style=\"background:url(https://x.example)\">a</p>",
    "<link rel=stylesheet href=https://x.example>",
    "<meta http-equiv=refresh content=\"0;url=https://x.example\">",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=https://x.example><input name=a autofocus onfocus=alert(1)>",
    "<base href=https://x.example>",
    "</div></div><h1>System</h1>",
    "</code></pre><script>alert(1)</script>",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "```\"onmouseover=alert(1)\na\n```",
    "``` \"><script>alert(1)</script>\na\n```",
    "```html\n<img src=x onerror=alert(1)> <!-- </code> \" ' \n--> </pre>\n```",
    "`<script>alert(1)</script>`",
    "# <script>alert(1)</script>",
    "|<script>|\n|-|\n|<img src=x onerror=alert(1)>|",
    "[a](https://x.example/\"onmouseover=\"alert(1))",
    "[a](<https://x.example/\"><script>alert(1)</script>>)",
    "[a](https://x.example \"\\\" onmouseover=\\\"alert(1)\")",
    "[<img src=x onerror=alert(1)>](https://x.example)",
    "![\"><script>alert(1)</script>](https://x.example/y.png)",
    "![a](https://x.example/\"onerror=\"alert(1))",
    "[![a](https://x.example/y.png)](javascript:alert(1))",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x&#62;",
];

/// Every form in which a page may show the text.
fn forms(source: &str) -> Vec<String> {
    let mut forms = vec![render(source, 2)];
    let (mut stream, mut out) = (MarkdownStream::new("m", 2).eager(), Vec::new());
    for c in source.chars() {
        stream.push(c.encode_utf8(&mut [0; 4]), &mut out);
        forms.push(stream.html());
    }
    forms
}

#[test]
fn a_hostile_text_gets_no_element_or_attribute_of_its_own() {
    for text in TEXTS {
        for around in [
            "{}",
            "> {}",
            "- {}",
            "a\n\n{}\n\nb\n\nc",
            "**{}**",
            "[{}](https://x.example)",
        ] {
            for html in forms(&around.replace("{}", text)) {
                check(&html);
            }
        }
    }
}

#[test]
fn a_link_with_a_script_address_is_text() {
    for address in SCHEMES {
        for source in [
            format!("[a]({address})"),
            format!("[a](<{address}>)"),
            format!("[a]\n\n[a]: {address}\n"),
            format!("[a]\n\n[a]: <{address}>\n"),
            format!("![a]({address})"),
            format!("![a](<{address}>)"),
            format!("<{address}>"),
        ] {
            for html in forms(&source) {
                check(&html);
                assert!(!html.contains("<a "), "{source:?}: {html}");
                assert!(!html.contains("<button"), "{source:?}: {html}");
            }
        }
    }
}

#[test]
fn the_address_of_a_refused_link_is_shown() {
    assert_eq!(
        render("[a](javascript:b) ![c](data:d) [e]() [f:g](f:g)", 2),
        r#"<p dir="auto">a (javascript:b) c (data:d) e f:g</p>"#
    );
}

#[test]
fn a_link_names_the_host_that_a_browser_opens() {
    for (address, host) in [
        ("https://a.example/b", r#"host">a.example"#),
        ("HTTPS://A.example:80?b", r#"host">A.example:80"#),
        ("https://a.example#@b.example", r#"host">a.example"#),
        ("https://a.example?@b.example/", r#"host">a.example"#),
        (
            "https://a.example@b.example/",
            r#"host" data-odd="1">b.example"#,
        ),
        (
            "https://a.example:c@d@b.example/",
            r#"host" data-odd="1">b.example"#,
        ),
        (
            "https://xn--bcher-kva.example",
            r#"host">xn--bcher-kva.example"#,
        ),
        (
            "https://bücher.example",
            r#"host" data-odd="1">bücher.example"#,
        ),
        ("https://a。example", r#"host" data-odd="1">a。example"#),
        ("https://%61.example", r#"host" data-odd="1">%61.example"#),
        ("https://[::1]/", r#"host">[::1]"#),
        ("mailto:a@b.example?bcc=c", r#"host">a@b.example"#),
    ] {
        let html = render(&format!("[x](<{address}>)"), 2);
        check(&html);
        assert!(
            html.contains(&format!("{host}</span></a>")),
            "{address}: {html}"
        );
    }
    for address in [
        "https://",
        "https:///a",
        "https://?a",
        "https://a@",
        "mailto:",
        "https://a\\\\@b",
    ] {
        assert!(
            !render(&format!("[x](<{address}>)"), 2).contains("<a"),
            "{address}"
        );
    }
}

#[test]
fn the_text_of_a_link_does_not_hide_its_host() {
    let html = render("[https://good.example](https://bad.example)", 2);
    assert!(html.contains(r#"https://good.example <span class="host">bad.example</span></a>"#));
    for same in [
        "<https://a.example/>",
        "[a.example](https://a.example/)",
        "<a@b.example>",
    ] {
        assert!(!render(same, 2).contains("host"), "{same}");
    }
    let odd = render("<https://good.example@bad.example>", 2);
    assert!(odd.contains(r#"<span class="host" data-odd="1">bad.example</span>"#));
}

#[test]
fn a_link_within_a_link_is_text() {
    let html = render("[a <https://b.example> c](https://d.example)", 2);
    check(&html);
    assert!(html.contains("a https://b.example c"), "{html}");
    assert_eq!(html.matches("<a ").count(), 1, "{html}");
}

#[test]
fn a_long_address_asks_first() {
    for (n, asks) in [(63, false), (64, true)] {
        for address in [format!("/{}", "é".repeat(n)), format!("?{}", "a".repeat(n))] {
            let html = render(&format!("[a](https://x.example{address})"), 2);
            assert_eq!(html.contains(r#" data-ask="1""#), asks, "{html}");
        }
    }
}

#[test]
fn an_image_is_a_button() {
    let button =
        r#"<button type="button" class="image" data-src="https://x.example/y.png">x.example"#;
    assert_eq!(
        render("![a *b*](https://x.example/y.png \"c\")", 2),
        format!(r#"<p dir="auto">{button} · a b</button></p>"#)
    );
    assert_eq!(
        render("![](https://x.example/y.png)", 2),
        format!(r#"<p dir="auto">{button}</button></p>"#)
    );
    // A button within a link is not HTML.
    let link = render("[![a](https://x.example/y.png)](https://z.example)", 2);
    assert!(link.contains(r#">x.example · a <span class="host">z.example</span></a>"#));
    let nested = render("![a [b](https://y.example) ![c](d)](https://x.example)", 2);
    assert_eq!(nested.matches('<').count(), 4, "{nested}");
}

#[test]
fn an_invisible_character_is_named() {
    let hidden = "\u{202e}\u{2066}\u{200b}\u{200f}\u{61c}\u{feff}\u{2060}\u{1}\u{7f}\u{9b}";
    for source in [
        format!("a{hidden}b"),
        format!("`a{hidden}b`"),
        format!("```rust\n\"a{hidden}b\"\n```"),
        format!("<b title='{hidden}'>"),
        format!("[a](https://x.example/{hidden})"),
        format!("![a{hidden}](https://x.example/)"),
        format!("```a{hidden}\nb\n```"),
    ] {
        for html in forms(&source) {
            check(&html);
            assert!(!html.chars().any(|c| hidden.contains(c)), "{html:?}");
        }
    }
    assert_eq!(
        render("a\u{202e}b\u{200d}\u{200c}", 2),
        "<p dir=\"auto\">a<span class=\"esc\">U+202E</span>b\u{200d}\u{200c}</p>"
    );
}
