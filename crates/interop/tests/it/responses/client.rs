//! A client as the official ones are: items are found by their place in the order of their coming.

use loomline_interop::responses::{EventFraming, ResponseOf, ResponseStream};
use serde_json::Value;
use std::collections::BTreeMap;
use timeline::Record;

/// The events of a stream, read from server-sent events, and whether it was ended.
pub(super) fn events_of(text: &str) -> (Vec<Value>, bool) {
    let mut events = Vec::new();
    let mut is_done = false;
    assert!(!text.contains('\r'));
    for frame in text.split_terminator("\n\n") {
        assert!(!is_done, "something comes after the end: {frame}");
        if frame == "data: [DONE]" {
            is_done = true;
            continue;
        }
        let (name, data) = frame.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"]);
        events.push(event);
    }
    (events, is_done)
}

/// The stream of a response, frame by frame.
pub(super) fn stream(records: &[Record], of: ResponseOf) -> String {
    let mut stream = ResponseStream::new(of, EventFraming::Sse);
    let mut out = String::new();
    for record in records {
        stream.apply(record, &mut out);
    }
    out
}

/// What a client has of the response while it streams, each item with whether it is over.
#[derive(Default)]
pub(super) struct Client {
    pub(super) items: Vec<(Value, bool)>,
    /// Texts that grow, by item, list and place.
    texts: BTreeMap<(usize, &'static str, usize), String>,
    pub(super) last: Option<Value>,
}

fn place(event: &Value, key: &str) -> usize {
    usize::try_from(event[key].as_u64().unwrap()).unwrap()
}

impl Client {
    pub(super) fn of(events: &[Value]) -> Self {
        let mut client = Self::default();
        let mut next = 0;
        for event in events {
            let number = event["sequence_number"].as_u64().unwrap();
            // After a reset the numbers continue at the next million.
            assert!(number == next || (number > next && number % 1_000_000 == 0));
            next = number + 1;
            assert!(client.last.is_none(), "an event comes after the last one");
            client.take(event);
        }
        client
    }

    fn part_of(event: &Value) -> (&'static str, usize) {
        if event.get("summary_index").is_some() {
            ("summary", place(event, "summary_index"))
        } else {
            ("content", place(event, "content_index"))
        }
    }

    fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        match kind {
            "response.output_item.added" => {
                assert_eq!(place(event, "output_index"), self.items.len());
                assert_eq!(event["item"]["status"], "in_progress");
                self.items.push((event["item"].clone(), false));
                return;
            }
            "response.completed" | "response.failed" | "response.incomplete" => {
                assert!(self.items.iter().all(|(_, is_over)| *is_over), "{event}");
                self.last = Some(event["response"].clone());
                return;
            }
            "error" | "response.created" | "response.queued" | "response.in_progress" => return,
            _ => {}
        }
        let at = place(event, "output_index");
        let (item, is_over) = &mut self.items[at];
        assert!(!*is_over, "an item that is over goes on: {event}");
        if kind == "response.output_item.done" {
            assert_eq!(event["item"]["id"], item["id"]);
            assert_ne!(event["item"]["status"], "in_progress");
            if item["type"] == "function_call" {
                assert_eq!(event["item"]["arguments"], item["arguments"]);
            }
            let texts = self.texts.iter().filter(|((of, _, _), _)| *of == at);
            for ((_, list, place), text) in texts {
                let part = &event["item"][list][place];
                let said = part.get("text").or_else(|| part.get("refusal")).unwrap();
                assert_eq!(said, text);
            }
            *item = event["item"].clone();
            *is_over = true;
            return;
        }
        assert_eq!(event["item_id"], item["id"]);
        if kind == "response.function_call_arguments.delta" {
            let arguments = item["arguments"].as_str().unwrap();
            item["arguments"] = format!("{arguments}{}", event["delta"].as_str().unwrap()).into();
            return;
        }
        if kind == "response.function_call_arguments.done" {
            assert_eq!(event["arguments"], item["arguments"]);
            assert_eq!(event["name"], item["name"]);
            return;
        }
        let (list, place) = Self::part_of(event);
        let key = (at, list, place);
        if kind.ends_with("part.added") {
            assert!(self.texts.insert(key, String::new()).is_none());
            return;
        }
        let text = self.texts.get_mut(&key).unwrap();
        if let Some(delta) = event.get("delta") {
            text.push_str(delta.as_str().unwrap());
        } else if let Some(whole) = event.get("text").or_else(|| event.get("refusal")) {
            assert_eq!(whole, text.as_str());
        }
    }
}
