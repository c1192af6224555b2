//! Waterfalls of runs: parallel tools, attempts, restarts, pauses.

use super::console_run::{ConsoleRun, RunContinuation};
use super::waterfall::{RowKind, rows, table};
use interop::run::ExecutionTimes;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::{Entry, Event, Item, Reaction, Record, Seq, Transcript};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The beginning of a run: its trigger at second 1, its execution at 2, its first step at 3.
fn beginning() -> Vec<(i64, Value)> {
    let item = json!({"id": "m", "type": "message", "role": "user", "createdAt": "1970-01-01T00:00:01Z", "status": "stored",
        "content": [{"type": "input_text", "text": "Go <b>"}]});
    let execution = json!({"id": "e", "threadId": "t", "contextId": "c", "triggerItemId": "m", "reactionItemId": "r",
        "status": "executing", "createdAt": "1970-01-01T00:00:02Z", "run": {"agent": "<i>lead"}});
    vec![
        (1, json!({"type": "item.created", "item": item})),
        (
            2,
            json!({"type": "execution.created", "execution": execution}),
        ),
        (3, step("s0", 0, 3)),
    ]
}

fn step(id: &str, iteration: u32, second: i64) -> Value {
    json!({"type": "step.created", "step": {"id": id, "executionId": "e", "iteration": iteration, "status": "running",
        "eventId": "r", "createdAt": at(second).to_string()}})
}

fn chunk(step: &str, name: &str) -> Value {
    let data = json!({"id": "t0-0", "delta": "a"});
    json!({"type": "chunk.emitted", "chunkType": name, "contextId": "c", "executionId": "e", "stepId": step, "data": data})
}

fn part(kind: &str, (step, idx): (&str, u32), part: &Value) -> Value {
    json!({"type": kind, "partKey": format!("{step}:{idx}"), "stepId": step, "idx": idx, "part": part})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": format!("tool-{name}"), "toolCallId": id, "state": "input-available", "input": {"to": "<script>"}})
}

fn result(id: &str, name: &str, millis: u64) -> Value {
    json!({"type": format!("tool-{name}"), "toolCallId": id, "state": "output-available", "input": {"to": "<script>"},
        "output": 1, "durationMs": millis})
}

fn step_end(step: &str, more: &Value) -> Value {
    let mut end = json!({"type": "step.status.changed", "stepId": step, "from": "running", "to": "completed"});
    let members = end.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    end
}

fn end() -> Value {
    json!({"type": "execution.status.changed", "executionId": "e", "from": "executing", "to": "completed"})
}

struct Folded {
    reaction: Reaction,
    times: ExecutionTimes,
    trigger: Item,
}

fn folded(events: &[(i64, Value)]) -> Folded {
    let mut transcript = Transcript::default();
    let mut times = ExecutionTimes::new("e".into());
    for (seq, (second, event)) in (1..).zip(events) {
        let record = Record {
            seq: Seq(seq),
            at: at(*second),
            event: Event::decode(&event.to_string()).unwrap(),
        };
        transcript.apply(&record);
        times.apply(&record);
    }
    let mut entries = transcript.entries.into_iter();
    let Some(Entry::Item(trigger)) = entries.next() else {
        panic!("the trigger comes first");
    };
    let Some(Entry::Reaction(reaction)) = entries.next() else {
        panic!("then its reaction");
    };
    Folded {
        reaction,
        times,
        trigger,
    }
}

impl Folded {
    fn run(&self) -> ConsoleRun<'_> {
        ConsoleRun {
            thread_key: "k",
            reaction: &self.reaction,
            times: &self.times,
            trigger: &self.trigger,
            continuation: None,
            is_waiting: false,
            seq: Some(2),
        }
    }
}

fn kinds(run: &ConsoleRun<'_>) -> Vec<RowKind> {
    rows(run).iter().map(|row| row.kind).collect()
}

/// The table as lines of words, without tags: a line for each row.
fn lines(run: &ConsoleRun<'_>, now: i64) -> Vec<String> {
    let html = table(&rows(run), at(now)).into_string();
    let body = html.split("<tbody>").nth(1).unwrap();
    let rows = body.split("<tr").skip(1);
    let words = |row: &str| {
        let mut text = String::new();
        let row = row.split_once('>').unwrap().1;
        let row = row.split("</tr>").next().unwrap();
        for piece in row.split('<') {
            let (tag, words) = piece.split_once('>').unwrap_or(("", piece));
            if tag.starts_with("/t") {
                text.push_str(" | ");
            }
            text.push_str(words);
        }
        text.trim_matches([' ', '|']).to_owned()
    };
    rows.map(words).collect()
}

/// The start and the width of each bar.
fn bars(run: &ConsoleRun<'_>, now: i64) -> Vec<(i64, i64)> {
    let html = table(&rows(run), at(now)).into_string();
    let bars = html.split("<svg").skip(1);
    let number = |bar: &str, name: &str| {
        let bar = bar.split("<rect").nth(2).unwrap();
        let value = bar.split(&format!(" {name}=\"")).nth(1).unwrap();
        value.split('"').next().unwrap().parse().unwrap()
    };
    bars.map(|bar| (number(bar, "x"), number(bar, "width")))
        .collect()
}

#[test]
fn parallel_tools_have_bars_side_by_side() {
    let mut events = beginning();
    events.extend([
        (5, chunk("s0", "text-delta")),
        (6, part("part.created", ("s0", 0), &call("a", "hotels"))),
        (6, part("part.created", ("s0", 1), &call("b", "flights"))),
        (6, chunk("s0", "data-step-response")),
        (
            9,
            part("part.updated", ("s0", 1), &result("b", "flights", 3_000)),
        ),
        (
            11,
            part("part.updated", ("s0", 0), &result("a", "hotels", 5_000)),
        ),
        (11, step_end("s0", &json!({"continueLoop": false}))),
        (12, end()),
    ]);
    let folded = folded(&events);
    let run = folded.run();
    assert_eq!(
        lines(&run, 99),
        [
            "waited before the run | 1.0 s",
            "run of &lt;i&gt;lead | 10.0 s |  | done",
            "step 0 | 3.0 s |  | done · first token after 2.0 s",
            "hotels to: &lt;script&gt; | 5.0 s |  | ok",
            "flights to: &lt;script&gt; | 3.0 s |  | ok",
        ]
    );
    let bars = bars(&run, 99);
    assert_eq!(bars[3].0, bars[4].0, "both start at once: {bars:?}");
    assert!(bars[3].1 > bars[4].1 && bars[1].1 > bars[3].1, "{bars:?}");
}

#[test]
fn a_crash_shows_the_voided_attempt_and_the_results_before_it() {
    let mut events = beginning();
    events.extend([
        (4, part("part.created", ("s0", 0), &call("a", "hotels"))),
        (4, chunk("s0", "data-step-response")),
        (
            5,
            part("part.updated", ("s0", 0), &result("a", "hotels", 1_000)),
        ),
        (5, step_end("s0", &json!({"continueLoop": true}))),
        (6, step("s1", 1, 6)),
        (7, chunk("s1", "text-delta")),
        (8, chunk("s1", "text-delta")),
        (60, chunk("s1", "data-execution-resumed")),
        (60, chunk("s1", "data-step-reset")),
        (61, chunk("s1", "text-delta")),
        (62, chunk("s1", "data-step-response")),
        (62, step_end("s1", &json!({"continueLoop": false}))),
        (62, end()),
    ]);
    let folded = folded(&events);
    let run = folded.run();
    assert_eq!(
        lines(&run, 99),
        [
            "waited before the run | 1.0 s",
            "run of &lt;i&gt;lead | 1 min 0 s |  | done",
            "step 0 | 1.0 s |  | done",
            "hotels to: &lt;script&gt; | 1.0 s |  | ok",
            "step 1 · attempt voided | 2.0 s |  | the process stopped · void: events 8…10, 2 chunks",
            "⚠ server crashed and restarted | 52.0 s |  | attempt voided · kept: 1 step, 1 result · resumed at event 11",
            "step 1 (again) | 2.0 s |  | done · first token after 1.0 s",
        ]
    );
    let html = table(&rows(&run), at(99)).into_string();
    assert!(html.contains("href=\"/console/t/k/events?view=full&amp;after=0#e-11\""));
    assert!(html.contains("Long pauses have shortened bars."));
}

#[test]
fn an_orderly_restart_between_tools_voids_nothing() {
    let mut events = beginning();
    events.extend([
        (4, part("part.created", ("s0", 0), &call("a", "hotels"))),
        (4, chunk("s0", "data-step-response")),
        (5, chunk("s0", "data-execution-parked")),
        (8, chunk("s0", "data-execution-resumed")),
    ]);
    let folded = folded(&events);
    let run = folded.run();
    let expected = [
        RowKind::Queue,
        RowKind::Run,
        RowKind::Model,
        RowKind::Call,
        RowKind::Restart,
    ];
    assert_eq!(kinds(&run), expected);
    let lines = lines(&run, 10);
    assert_eq!(
        lines[4],
        "⚠ server restarted | 4.0 s |  | nothing voided · kept: 0 steps, 0 results · resumed at event 7"
    );
    assert!(lines[3].contains("open 6.0 s |  | no result"), "{lines:?}");
}

#[test]
fn a_wait_for_a_person_ends_with_the_run_that_continues() {
    let mut events = beginning();
    let open =
        json!({"openCalls": [{"toolCallId": "a", "kind": "approval", "part": call("a", "book")}]});
    events.extend([
        (4, part("part.created", ("s0", 0), &call("a", "book"))),
        (4, chunk("s0", "data-step-response")),
        (4, step_end("s0", &open)),
        (5, end()),
    ]);
    let folded = folded(&events);
    let waiting = ConsoleRun {
        is_waiting: true,
        ..folded.run()
    };
    let last = |run: &ConsoleRun<'_>| lines(run, 65).pop().unwrap();
    assert_eq!(
        last(&waiting),
        "waits for a person: approve book | open 1 min 0 s |  | open"
    );
    let next = RunContinuation {
        execution_id: "f".to_owned(),
        created_at: at(15),
    };
    let answered = ConsoleRun {
        continuation: Some(&next),
        ..folded.run()
    };
    assert_eq!(
        last(&answered),
        "waits for a person: approve book | 10.0 s |  | answered"
    );
}

#[test]
fn a_sub_agent_has_a_row_below_its_call() {
    let mut events = beginning();
    let spawned = json!({"type": "data-tp-thread_spawn", "id": "1", "data": {"spawned_thread_id": "child 1", "tool_call_id": "a", "subagent_type": "finder"}});
    let ended = json!({"type": "data-tp-thread_end", "id": "2", "data": {"thread_id": "child 1", "tool_call_id": "a"}});
    events.extend([
        (4, part("part.created", ("s0", 0), &call("a", "find"))),
        (4, chunk("s0", "data-step-response")),
        (5, part("part.created", ("s0", 1), &spawned)),
        (8, part("part.created", ("s0", 2), &ended)),
        (
            9,
            part("part.updated", ("s0", 0), &result("a", "find", 5_000)),
        ),
        (9, step_end("s0", &json!({"continueLoop": false}))),
        (9, end()),
    ]);
    let folded = folded(&events);
    let run = folded.run();
    let lines = lines(&run, 10);
    assert_eq!(lines[4], "sub-agent finder | 3.0 s |  | ended");
    let html = table(&rows(&run), at(10)).into_string();
    assert!(html.contains("href=\"/ui/console/child%201\""), "{html}");
}
