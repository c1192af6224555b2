//! The floor of the agent benchmark, in plain Rust. It parses each reply, calls the tool and adds one line of JSON a
//! message to the history. It has no hooks, no events, no ids and no clock.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::hint::black_box;

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Said<'a>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    User {
        text: &'a str,
    },
    Assistant {
        text: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<(&'a str, &'a str, &'a RawValue)>,
    },
    ToolResult {
        results: Vec<(&'a str, String)>,
    },
}

fn tool(arguments: &str, text: &str) -> String {
    let arguments: Arguments<'_> = serde_json::from_str(arguments).unwrap();
    black_box(&arguments.key);
    text.to_owned()
}

fn keep(history: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *history, line).unwrap();
    history.push(b'\n');
}

/// One run: the replies in order, until one calls no tool. Gives the number of calls of the model.
pub(crate) fn run(history: &mut Vec<u8>, input: &str, replies: &[String], text: &str) -> usize {
    keep(history, &Line::User { text: input });
    for (at, reply) in replies.iter().enumerate() {
        let reply: Reply<'_> = serde_json::from_str(reply).unwrap();
        let said = &reply.choices.first().unwrap().message;
        let calls = said.tool_calls.iter().map(|call| {
            let arguments = serde_json::from_str(&call.function.arguments).unwrap();
            (call.id, call.function.name, arguments)
        });
        let line = Line::Assistant {
            text: &said.content,
            calls: calls.collect(),
        };
        keep(history, &line);
        if said.tool_calls.is_empty() {
            return at + 1;
        }
        let results = said
            .tool_calls
            .iter()
            .map(|call| (call.id, tool(&call.function.arguments, text)))
            .collect();
        keep(history, &Line::ToolResult { results });
    }
    replies.len()
}
