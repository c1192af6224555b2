//! Documents for the tests: awkward ones, and random ones.

/// Documents that are hard to cut.
pub(super) const AWKWARD: [&str; 40] = [
    "# One\n\nA *para* of **two** lines\nand `code`.\n\n## Two\n\n- a\n- b\n\n1. c\n2. d\n\nEnd.\n",
    "1. a\n\n2\n\nb\n\n2. c\n\nd\n\ne\n",
    "a\n\n    code\n\n    more\n\nb\n\n     deep\n\nc\n",
    "- a\n\n  b\n\n      code\n\n- c\n\n\n\n- d\n\ne\n\nf\n",
    "```rust\nfn main() {\n\n    let a = \"b\n c\";\n}\n```\n\nafter\n\nend\n",
    "```\nopen\n\n# no heading\n\n- no item\n\nno para\n",
    "~~~py\n```\n\n~~~~\n\na\n\nb\n\n~~~\n",
    "> a\n>\n> b\nlazy\n\n> c\n\nd\n\n> > e\n> f\n\ng\n",
    "| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 |\n| 4 | 5 | 6 |\n\nb\n\nc\n",
    "| a |\n\n|---|\n\nb\n\n| c |\n|---|\n\nd\n\ne\n",
    "a\n===\n\nb\n---\n\nc\n\n---\n\nd\n\n- - -\n\n***\ne\n",
    "<div>\n\na *b*\n\n</div>\n\n<!-- c\n\nd\n\n-->\n\ne\n\nf\n",
    "<script>\n\nalert(1)\n\n</script>\n\na\n\n<pre>\n\nb\n\n</pre>\nc\n\nd\n",
    "[a]\n\n[b][a]\n\nc\n\nd\n\n[a]: https://x.example/y \"t\"\n",
    "[a]: https://x.example\n\n[a]\n\nb\n\nc\n\n[a]\n\nd\n",
    "[a]: https://x.example\n'title\nover lines'\n\n[a]\n\nb\n\nc\n",
    "[a](https://x.example \"b\n\nc\")\n\n[d](\nhttps://y.example)\n\ne\n",
    "![a\n\nb](https://x.example/y.png)\n\n![c *d* ![e](f)](https://z.example)\n\ng\n",
    "a\r\n\r\nb\r\nc\r\n\r\n- d\r\n\r\n- e\r\n\r\nf\r\n\r\ng\r\n",
    "a\r\rb\r\r- c\r\r# d\r\re\r",
    "- [ ] a\n- [x] b\n\n  - [ ] c\n\nd\n\ne\n",
    "* a\n\n+ b\n\n- c\n\n* d\n\n1. e\n\n1) f\n\n2) g\n",
    "a  \nb\\\nc\n\n&amp; &#65; &#x202e; &lt;\n\n\\* \\a\n\nd\n",
    "**a *b* c** ***d*** _e __f__ g_ ~~h~~ ~i~\n\n*j\n\nk*\n\nl\n",
    "`a` ``b ` c`` `d\ne` `f\n\ng` h\n\ni\n",
    "# a\n#b\n##  c ##\n#\n####### d\n\n### e\n\n# f\n\n## g\n",
    "\n\n\n   a\n\n\t\n\n  b\n\n\tc\n\n \td\n\ne\n",
    "- a\n  - b\n    - c\n\n      d\n  - e\n\nf\n\n- g\n\n    h\n",
    "  - a\n\n - b\n\n- c\n\n   - d\n\n    - e\n\nf\n",
    "- ```js\n  let a;\n\n  // b\n  ```\n\n- c\n\nd\n\ne\n",
    "> ```\n> a\n\n> b\n> ```\n\nc\n\nd\n",
    "a\u{202e}b\u{200b}c\u{feff}\n\n\u{feff}# d\n\n\u{0}e\u{7f}\n\n👨\u{200d}👩 f\n",
    "עברית *שלום*\n\n- العربية\n\n中文，测试\n\n# ไทย\n\nend\n",
    "https://x.example/y <https://z.example> <a@b.example>\n\n<x:y>\n\na\n",
    "-\n\n- a\n\n-\n  b\n\n*\n\n1.\n\nc\n\nd\n",
    "-----\n\n- a\n-----\n\nb\n\n-\n--\n\nc\n",
    "|a|b|\n|-|-|\n|`c|d`|e|\n|\\||f|\n||\n\ng\n\n|h\n\ni\n",
    "1. a\n\n   > b\n   >\n   > - c\n   >\n   >   d\n\n2. e\n\n\nf\n\ng\n",
    "```diff\n+ a\n- b\n@@ c\n\n d\n```\n```html\n<!-- a\n\n--> <b c=\"d\">\n```\n\ne\n\nf",
    "*** a\n\n___\n\n+++\n\n===\n\n~~~ a\n\n~~\n\n~~~\n\nb\n\nc",
];

/// Pieces of random documents.
const PIECES: [&str; 66] = [
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "\n\n",
    " ",
    "  ",
    "    ",
    "\t",
    "a",
    "b ",
    "word",
    "c\n\nd\n\ne",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2.",
    "2",
    "3) ",
    "> ",
    ">",
    "# ",
    "## ",
    "###",
    "---",
    "===",
    "***",
    "*",
    "**",
    "_",
    "~~",
    "`",
    "``",
    "```",
    "```rs\n",
    "~~~",
    "|",
    "| a | b |\n|---|---|\n",
    "|-|",
    "[",
    "]",
    "(",
    ")",
    "![",
    "](",
    "https://x.example",
    "<",
    ">",
    "<div>",
    "</div>",
    "<!--",
    "-->",
    "&amp;",
    "&",
    "\\",
    "\"",
    "'",
    "// c",
    "/*",
    "*/",
    "[ ] ",
    "\r\n",
    "\u{202e}",
    "é",
    "\n    x",
];

/// A linear congruential generator: enough for documents, and each run is alike.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }

    /// A document of up to 15 pieces.
    pub(super) fn document(&mut self) -> String {
        let n = 4 + self.below(12);
        (0..n).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}
