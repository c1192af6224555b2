//! Closes what is open in a JSON text that was cut off.

use crate::ai_sdk::chunk::Major;

/// The state of the scan. It follows the grammar only as far as needed to find open structures. The
/// reader of the result decides whether that is JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Root,
    Finish,
    String,
    Escape,
    UnicodeEscape,
    Literal,
    Number,
    ObjectStart,
    ObjectKey,
    ObjectAfterKey,
    ObjectBeforeValue,
    ObjectAfterValue,
    ObjectAfterComma,
    ArrayStart,
    ArrayAfterValue,
    ArrayAfterComma,
}

const LITERALS: [&str; 3] = ["true", "false", "null"];

struct Scan<'t> {
    text: &'t str,
    major: Major,
    open: Vec<At>,
    /// The end of the part that is retained.
    kept: usize,
    literal_start: usize,
    digits: u8,
}

/// The text up to where it last made sense, with everything closed that was open.
pub(super) fn repaired(text: &str, major: Major) -> String {
    let mut scan = Scan {
        text,
        major,
        open: vec![At::Root],
        kept: 0,
        literal_start: 0,
        digits: 0,
    };
    for (start, char) in text.char_indices() {
        // Clients go by UTF-16 code units.
        for _ in 0..char.len_utf16() {
            scan.take(char, start, start + char.len_utf8());
        }
    }
    scan.closed()
}

impl Scan<'_> {
    /// Takes one character, at the bytes from `start` to `end`.
    fn take(&mut self, char: char, start: usize, end: usize) {
        match self.open.last().copied().unwrap_or(At::Finish) {
            At::Root => self.value_start(char, start, end, At::Finish),
            At::String => match char {
                '"' => self.close(end),
                '\\' => self.open.push(At::Escape),
                _ => self.kept = end,
            },
            At::Escape => {
                self.open.pop();
                // `ai` 5 takes an escape for done once its letter is there.
                if char == 'u' && self.major > Major::V5 {
                    self.digits = 0;
                    self.open.push(At::UnicodeEscape);
                } else {
                    self.kept = end;
                }
            }
            At::UnicodeEscape => {
                self.digits += u8::from(char.is_ascii_hexdigit());
                if self.digits == 4 {
                    self.close(end);
                }
            }
            At::Literal => self.literal(char, end),
            At::Number => self.number(char, end),
            At::ObjectStart => match char {
                '"' => self.turn_into(At::ObjectKey),
                '}' => self.close(end),
                _ => {}
            },
            At::ObjectAfterComma if char == '"' => self.turn_into(At::ObjectKey),
            At::ObjectKey if char == '"' => self.turn_into(At::ObjectAfterKey),
            At::ObjectAfterKey if char == ':' => self.turn_into(At::ObjectBeforeValue),
            At::Finish | At::ObjectAfterComma | At::ObjectKey | At::ObjectAfterKey => {}
            At::ObjectBeforeValue => self.value_start(char, start, end, At::ObjectAfterValue),
            At::ObjectAfterValue => self.after_object_value(char, end),
            At::ArrayStart => {
                if char == ']' {
                    return self.close(end);
                }
                if self.major < Major::V7 {
                    self.kept = end;
                }
                self.value_start(char, start, end, At::ArrayAfterValue);
            }
            At::ArrayAfterValue => match char {
                ',' | ']' => self.after_array_value(char, end),
                _ => self.kept = end,
            },
            At::ArrayAfterComma => self.value_start(char, start, end, At::ArrayAfterValue),
        }
    }

    fn turn_into(&mut self, at: At) {
        self.open.pop();
        self.open.push(at);
    }

    fn close(&mut self, end: usize) {
        self.kept = end;
        self.open.pop();
    }

    fn value_start(&mut self, char: char, start: usize, end: usize, then: At) {
        let value = match char {
            '"' => At::String,
            'f' | 't' | 'n' => At::Literal,
            '-' | '0'..='9' => At::Number,
            '{' => At::ObjectStart,
            '[' => At::ArrayStart,
            _ => return,
        };
        if char != '-' {
            self.kept = end;
        }
        if value == At::Literal {
            self.literal_start = start;
        }
        self.turn_into(then);
        self.open.push(value);
    }

    fn after_object_value(&mut self, char: char, end: usize) {
        match char {
            ',' => self.turn_into(At::ObjectAfterComma),
            '}' => self.close(end),
            _ => {}
        }
    }

    fn after_array_value(&mut self, char: char, end: usize) {
        match char {
            ',' => self.turn_into(At::ArrayAfterComma),
            ']' => self.close(end),
            _ => {}
        }
    }

    /// A number is over with the first character that is none of it.
    fn number(&mut self, char: char, end: usize) {
        match char {
            '0'..='9' => self.kept = end,
            'e' | 'E' | '-' | '.' => {}
            _ => {
                self.open.pop();
                self.after_value(char, end);
            }
        }
    }

    fn literal(&mut self, char: char, end: usize) {
        let word = self.text.get(self.literal_start..end).unwrap_or_default();
        if LITERALS.iter().any(|literal| literal.starts_with(word)) {
            self.kept = end;
        } else {
            self.open.pop();
            self.after_value(char, end);
        }
    }

    fn after_value(&mut self, char: char, end: usize) {
        match self.open.last() {
            Some(At::ObjectAfterValue) => self.after_object_value(char, end),
            Some(At::ArrayAfterValue) => self.after_array_value(char, end),
            _ => {}
        }
    }

    fn closed(self) -> String {
        let mut whole = self.text.get(..self.kept).unwrap_or_default().to_owned();
        for at in self.open.iter().rev() {
            match at {
                At::String => whole.push('"'),
                At::ObjectStart
                | At::ObjectKey
                | At::ObjectAfterKey
                | At::ObjectBeforeValue
                | At::ObjectAfterValue
                | At::ObjectAfterComma => whole.push('}'),
                At::ArrayStart | At::ArrayAfterValue | At::ArrayAfterComma => whole.push(']'),
                At::Literal => {
                    let word = self.text.get(self.literal_start..).unwrap_or_default();
                    let rest = LITERALS
                        .iter()
                        .find_map(|literal| literal.strip_prefix(word));
                    whole.push_str(rest.unwrap_or_default());
                }
                At::Root | At::Finish | At::Escape | At::UnicodeEscape | At::Number => {}
            }
        }
        whole
    }
}
