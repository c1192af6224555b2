//! Histories as a library of any version may write them, made from choices.

use crate::dice::Dice;
use std::fmt::Write as _;

/// Values of any kind, spelled in ways that a parser likes to change.
const VALUES: [&str; 12] = [
    "null",
    "1208925819614629174706176",
    "1.0",
    "-0.0",
    "1e400",
    "0.1E-7",
    r#""plain""#,
    r#""日本語 \u0000 \ud83d\ude00 \"q\" \\ / é""#,
    r#"{"z":1,"a":[{},[],[[[{"deep":[null]}]]]]}"#,
    "[true,false,2.50]",
    r#""-__-8A==""#,
    r#"{"kind":"image-url","url":"http://x"}"#,
];

/// Arguments of a call: text that may be no JSON, an object, nothing.
const ARGS: [&str; 6] = [
    r#""{\"b\": 1.0,  \"a\":2}""#,
    r#""{\"cut\": \"of""#,
    r#""""#,
    "null",
    r#"{"n":1208925819614629174706176,"é":[1.0]}"#,
    "{}",
];

const CONTENT: [&str; 7] = [
    r#""hello""#,
    r#""""#,
    "[]",
    r#"["a",{"url":"http://x/y.png","force_download":"allow-local","vendor_metadata":null,"kind":"image-url","media_type":null,"identifier":"f"}]"#,
    r#"[{"data":"-__-8A==","media_type":"image/png","vendor_metadata":{"x":1.0},"kind":"binary","identifier":"i"},"b"]"#,
    r#"[{"content":"t","metadata":{"k":[1]},"kind":"text-content"},{"kind":"cache-point","ttl":"1h"}]"#,
    r#"[{"kind":"hologram","beam":1e2}]"#,
];

/// A history in the making.
pub(crate) struct History {
    /// Each message, compact.
    pub(crate) messages: Vec<String>,
    n_calls: usize,
    /// Calls that no one has answered: id and tool.
    open: Vec<(String, &'static str)>,
}

impl History {
    /// The whole history, compact.
    pub(crate) fn text(&self) -> String {
        list(&self.messages)
    }
}

/// Messages as a history.
pub(crate) fn list(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

/// A history of up to five runs.
pub(crate) fn history(bytes: &[u8]) -> History {
    let mut dice = Dice::new(bytes);
    let mut history = History {
        messages: Vec::new(),
        n_calls: 0,
        open: Vec::new(),
    };
    for n in 0..dice.roll(6) {
        history.run(&mut dice, n);
    }
    history
}

impl History {
    fn at(&self) -> String {
        let n = self.messages.len();
        format!("2026-01-05T08:{:02}:{:02}.00000{}Z", n / 60, n % 60, n % 10)
    }

    fn request(&mut self, dice: &mut Dice<'_>, run: &str, parts: &[String]) {
        let at = self.at();
        let timestamp = dice.pick(&[
            format!(r#","timestamp":"{at}""#),
            format!(r#","timestamp":"{at}""#),
            r#","timestamp":null"#.to_owned(),
            String::new(),
            r#","timestamp":"2026-01-05T08:00:00""#.to_owned(),
        ]);
        let said = dice.pick(&[
            "",
            r#","instructions":null"#,
            r#","instructions":"Be brief.""#,
        ]);
        let rest = dice.pick(&[
            "",
            r#","metadata":{"k":1.0},"state":"complete""#,
            r#","conversation_id":"c","x_new":[1e2]"#,
        ]);
        let parts = parts.join(",");
        let kind = r#","kind":"request""#;
        let message = format!(r#"{{"parts":[{parts}]{timestamp}{said}{kind}{run}{rest}}}"#);
        self.messages.push(message);
    }

    fn response(&mut self, dice: &mut Dice<'_>, run: &str, parts: &[String]) {
        let usage = dice.pick(&[
            "",
            r#","usage":{"input_tokens":5,"output_tokens":2,"details":{"x":1},"cost":"0.01"}"#,
            r#","usage":{"input_tokens":1208925819614629174706176,"audio_seconds":1.0,"new":3}"#,
        ]);
        let model = dice.pick(&["", r#","model_name":"m","model_id":null"#]);
        let rest = dice.pick(&[
            "",
            r#","provider_name":"p","provider_details":{"a":[1.0]},"finish_reason":"stop""#,
            r#","state":"interrupted""#,
            r#","failed_attempts":null,"state":"complete","x_new":null"#,
        ]);
        let (at, parts) = (self.at(), parts.join(","));
        let head = format!(r#"{{"parts":[{parts}]{usage}{model},"timestamp":"{at}""#);
        self.messages
            .push(format!(r#"{head},"kind":"response"{run}{rest}}}"#));
    }

    fn prompt(&self, dice: &mut Dice<'_>) -> String {
        let (content, at) = (dice.pick(&CONTENT), self.at());
        format!(r#"{{"content":{content},"timestamp":"{at}","part_kind":"user-prompt"}}"#)
    }

    fn answers(&mut self, dice: &mut Dice<'_>) -> Vec<String> {
        let at = self.at();
        let mut parts = Vec::new();
        for (id, tool) in std::mem::take(&mut self.open) {
            let value = dice.pick(&VALUES);
            let head = format!(r#""tool_name":"{tool}""#);
            let tail = format!(r#""tool_call_id":"{id}""#);
            let outcome = dice.pick(&[
                "",
                r#","outcome":"success","retry":null"#,
                r#","outcome":"retried","retry":{"cause":"validation_error","attempt":1}"#,
                r#","metadata":{"m":[1.0]},"outcome":"denied""#,
            ]);
            parts.push(if dice.one_in(6) {
                format!(
                    r#"{{"content":"no",{head},{tail},"timestamp":"{at}","part_kind":"retry-prompt"}}"#
                )
            } else {
                format!(
                    r#"{{{head},"content":{value},{tail}{outcome},"timestamp":"{at}","part_kind":"tool-return"}}"#
                )
            });
            if dice.one_in(8) {
                // The others are never answered.
                break;
            }
        }
        parts
    }

    fn speech(dice: &mut Dice<'_>) -> Vec<String> {
        let mut parts = Vec::new();
        for _ in 0..dice.roll(3) {
            let value = dice.pick(&VALUES);
            parts.push(dice.pick(&[
                r#"{"content":"Yes.","id":null,"part_kind":"text"}"#.to_owned(),
                r#"{"content":"","signature":"s","provider_name":null,"part_kind":"thinking"}"#.to_owned(),
                r#"{"content":{"data":"AAAA","media_type":"image/gif","kind":"binary","identifier":"g"},"part_kind":"file"}"#.to_owned(),
                format!(r#"{{"beam":{value},"part_kind":"hologram"}}"#),
                format!(r#"{{"tool_name":"web","args":null,"tool_call_id":"b","x":{value},"part_kind":"builtin-tool-call"}}"#),
                r#"{"content":null,"id":"c","part_kind":"compaction"}"#.to_owned(),
            ]));
        }
        parts
    }

    fn call(&mut self, dice: &mut Dice<'_>) -> String {
        self.n_calls += 1;
        // Ids come again in later cycles, and sometimes in one.
        let id = format!("c{}", self.n_calls % 5);
        let (tool, args) = (dice.pick(&["add", "find"]), dice.pick(&ARGS));
        let part = format!(
            r#"{{"tool_name":"{tool}","args":{args},"tool_call_id":"{id}","id":null,"part_kind":"tool-call"}}"#
        );
        self.open.push((id, tool));
        part
    }

    fn run(&mut self, dice: &mut Dice<'_>, n: usize) {
        let mut run = dice.pick(&[
            format!(r#","run_id":"r{n}""#),
            format!(r#","run_id":"r{n}""#),
            r#","run_id":null"#.to_owned(),
            String::new(),
        ]);
        let mut parts = if dice.one_in(4) {
            self.answers(dice)
        } else {
            Vec::new()
        };
        if dice.one_in(4) {
            let mut part = String::from(r#"{"content":"You are"#);
            let _ = write!(
                part,
                r#" {n}","dynamic_ref":null,"part_kind":"system-prompt"}}"#
            );
            parts.push(part);
        }
        if dice.one_in(5) {
            parts
                .push(r#"{"id":null,"content":"New.","part_kind":"instruction-delta"}"#.to_owned());
        }
        if !dice.one_in(6) {
            parts.push(self.prompt(dice));
        }
        self.request(dice, &run, &parts);
        for _ in 0..dice.roll(4) {
            self.open.clear();
            let mut parts = Self::speech(dice);
            for _ in 0..dice.roll(3) {
                parts.push(self.call(dice));
            }
            self.response(dice, &run, &parts);
            if dice.one_in(7) {
                return;
            }
            if dice.one_in(9) {
                // As where the library merged requests.
                run = r#","run_id":null"#.to_owned();
            }
            let answers = self.answers(dice);
            if !answers.is_empty() || dice.one_in(8) {
                self.request(dice, &run, &answers);
            }
        }
        if dice.one_in(2) {
            let parts = Self::speech(dice);
            self.response(dice, &run, &parts);
        }
    }
}

/// JSON with white space wherever it is allowed.
pub(crate) fn spaced(text: &str) -> String {
    let mut out = String::from("\n ");
    let (mut is_string, mut is_escaped) = (false, false);
    for char in text.chars() {
        let was_string = is_string;
        if is_escaped {
            is_escaped = false;
        } else if char == '\\' {
            is_escaped = is_string;
        } else if char == '"' {
            is_string = !is_string;
        }
        let is_mark = !was_string && "{}[]:,".contains(char);
        if is_mark {
            out.push_str(" \t");
        }
        out.push(char);
        if is_mark {
            out.push_str("\r\n");
        }
    }
    out
}
