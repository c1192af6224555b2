//! The languages of the lexer.

/// A kind of string.
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether `\` escapes the next character.
    pub(super) escapes: bool,
    /// Whether it may go over line ends.
    pub(super) lines: bool,
    /// Whether it holds one character only.
    pub(super) is_char: bool,
}

/// How the lexer reads a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    /// Keywords have any case.
    AnyCase,
    /// Comments and strings do not begin within a word.
    Prose,
    /// As prose, and the names of elements are the keywords.
    Markup,
    /// The first character of a line decides.
    Diff,
}

/// The rules of a language.
pub(super) struct Rules {
    names: &'static str,
    /// Beginnings of comments that end with the line.
    pub(super) line: &'static [&'static str],
    /// The beginning and end of a comment, or nothing.
    pub(super) block: (&'static str, &'static str),
    pub(super) quotes: &'static [Quote],
    /// The keywords, with spaces between them.
    pub(super) words: &'static str,
    /// Characters of words, apart from letters, digits and `_`.
    pub(super) extra: &'static str,
    pub(super) kind: Kind,
}

/// The rules of a language by one of its names in lower case.
pub(super) fn find(name: &str) -> Option<&'static Rules> {
    let is_it = |it: &&Rules| it.names.split(' ').any(|known| known == name);
    LANGUAGES.iter().find(is_it).filter(|_| !name.is_empty())
}

const fn quote(open: &'static str, close: &'static str, escapes: bool, lines: bool) -> Quote {
    let is_char = false;
    Quote {
        open,
        close,
        escapes,
        lines,
        is_char,
    }
}

const DOUBLE: Quote = quote("\"", "\"", true, false);
const SINGLE: Quote = quote("'", "'", true, false);
const PLAIN: Quote = quote("'", "'", false, false);
const TRIPLE: Quote = quote("\"\"\"", "\"\"\"", true, true);
const BACK: Quote = quote("`", "`", false, true);
const CHAR: Quote = Quote {
    is_char: true,
    ..SINGLE
};

const SLASHES: Rules = Rules {
    names: "",
    line: &["//"],
    block: ("/*", "*/"),
    quotes: &[DOUBLE, SINGLE],
    words: "",
    extra: "",
    kind: Kind::Code,
};

const HASHES: Rules = Rules {
    line: &["#"],
    block: ("", ""),
    kind: Kind::Prose,
    ..SLASHES
};

const LANGUAGES: [Rules; 18] = [
    Rules {
        names: "rust rs",
        quotes: &[
            quote("r#\"", "\"#", false, true),
            quote("r\"", "\"", false, true),
            quote("\"", "\"", true, true),
            CHAR,
        ],
        words: "as async await break const continue crate dyn else enum extern false fn for if impl in let \
            loop match mod move mut pub ref return self Self static struct super trait true type unsafe use \
            where while",
        ..SLASHES
    },
    Rules {
        names: "python py python3",
        quotes: &[TRIPLE, quote("'''", "'''", true, true), DOUBLE, SINGLE],
        words: "and as assert async await break case class continue def del elif else except False finally \
            for from global if import in is lambda match None nonlocal not or pass raise return True try \
            while with yield",
        kind: Kind::Code,
        ..HASHES
    },
    Rules {
        names: "javascript js jsx mjs typescript ts tsx",
        quotes: &[quote("`", "`", true, true), DOUBLE, SINGLE],
        words: "abstract any as async await boolean break case catch class const continue debugger declare \
            default delete do else enum export extends false finally for from function if implements import \
            in instanceof interface keyof let new null number of private protected public readonly return \
            static string super switch this throw true try type typeof undefined unknown var void while yield",
        ..SLASHES
    },
    Rules {
        names: "json jsonc json5 jsonl",
        quotes: &[DOUBLE],
        words: "true false null",
        ..SLASHES
    },
    Rules {
        names: "bash sh shell zsh console",
        quotes: &[quote("\"", "\"", true, true), quote("'", "'", false, true)],
        words: "if then else elif fi for while until do done case esac in function select return exit local \
            export readonly declare set unset shift source alias trap break continue eval exec",
        ..HASHES
    },
    Rules {
        names: "sql postgresql sqlite mysql",
        line: &["--"],
        quotes: &[
            quote("'", "'", false, true),
            quote("\"", "\"", false, false),
        ],
        words: "add all alter and any as asc begin between by cascade case check column commit constraint \
            create cross default delete desc distinct drop else end except exists false foreign from full \
            group having if in index inner insert intersect into is join key left like limit not null on \
            offset or order outer over partition primary references returning right rollback select set \
            table then transaction true union unique update using values view when where with",
        kind: Kind::AnyCase,
        ..SLASHES
    },
    Rules {
        names: "toml ini",
        quotes: &[TRIPLE, quote("'''", "'''", false, true), DOUBLE, PLAIN],
        words: "true false inf nan",
        ..HASHES
    },
    Rules {
        names: "yaml yml",
        quotes: &[DOUBLE, PLAIN],
        words: "true false null yes no on off",
        ..HASHES
    },
    Rules {
        names: "go golang",
        quotes: &[BACK, DOUBLE, SINGLE],
        words: "any bool break byte case chan const continue default defer else error fallthrough false for \
            func go goto if import int interface map nil package range return rune select string struct \
            switch true type var",
        ..SLASHES
    },
    Rules {
        names: "java kotlin kt",
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        words: "abstract assert boolean break byte case catch char class const continue data default do \
            double else enum extends false final finally float for fun if implements import in instanceof \
            int interface is long new null object override package private protected public record return \
            sealed short static super switch this throw throws true try val var void volatile when while",
        ..SLASHES
    },
    Rules {
        names: "c h cpp c++ cc hpp cs csharp c#",
        words: "alignas auto bool break case catch char class const constexpr continue default delete do \
            double else enum explicit extern false float for foreach friend if inline int internal long \
            namespace new noexcept null nullptr operator override private protected public return short \
            signed sizeof static string struct switch template this throw true try typedef typename union \
            unsigned using var virtual void volatile while",
        ..SLASHES
    },
    Rules {
        names: "html xml svg xhtml vue",
        line: &[],
        block: ("<!--", "-->"),
        quotes: &[DOUBLE, PLAIN],
        extra: "-:",
        kind: Kind::Markup,
        ..SLASHES
    },
    Rules {
        names: "css scss less",
        line: &[],
        words: "@media @import @font-face @keyframes @layer @supports @container @property important from to \
            inherit initial unset none auto",
        extra: "-@",
        ..SLASHES
    },
    Rules {
        names: "diff patch",
        kind: Kind::Diff,
        ..SLASHES
    },
    Rules {
        names: "dockerfile docker containerfile",
        words: "FROM AS RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD \
            STOPSIGNAL HEALTHCHECK SHELL",
        ..HASHES
    },
    Rules {
        names: "ruby rb",
        words: "alias and begin break case class def do else elsif end ensure false for if in module next nil \
            not or redo rescue retry return self super then true undef unless until when while yield",
        ..HASHES
    },
    Rules {
        names: "makefile make",
        words: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport",
        ..HASHES
    },
    Rules {
        names: "swift",
        quotes: &[TRIPLE, DOUBLE],
        words: "as async await break case catch class continue default defer do else enum extension false \
            for func guard if import in init inout is let nil private protocol public repeat return self \
            static struct super switch throw throws true try var where while",
        ..SLASHES
    },
];
