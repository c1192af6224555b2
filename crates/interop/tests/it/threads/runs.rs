//! Runs and their steps as objects.

use super::logs::{Writer, interruption, open, start, text_part};
use super::objects::view;
use super::schema;
use jiff::SignedDuration;
use loomline_interop::parts::ToolPart;
use loomline_interop::threads::{
    Assistant, CreateRun, RunStatus, RunStepId, ThreadView, cancels, trigger,
};
use serde_json::{Value, json};
use std::time::Duration;
use timeline::{Command, Ending, Entry, ItemType, OpenKind, Removed, StepOutcome};

fn only_run(writer: &Writer) -> Value {
    let view = view(writer);
    assert_eq!(view.runs().len(), 1);
    let object = serde_json::to_value(view.runs()[0].object(writer.log.at)).unwrap();
    schema::check("RunObject", &object);
    object
}

#[test]
fn each_step_that_says_something_is_a_message_with_its_run_step() {
    let mut writer = Writer::new();
    writer.start(None);
    let call = ToolPart::call("look", "c", "{}");
    let reasoning = json!({"type": "reasoning", "text": "hm"});
    writer.respond(
        vec![
            reasoning.into(),
            text_part("Let me see."),
            call.write().unwrap(),
        ],
        "tool_use",
    );
    writer.put(2, &call, &json!("seen"));
    writer.complete(&[], true);
    let image = json!({"type": "loomline-output-file", "file_data": "data:image/png;base64,AAAA", "media_type": "image/png"});
    writer.respond(
        vec![
            text_part("Here."),
            image.into(),
            json!({"type": "refusal", "refusal": "No more."}).into(),
        ],
        "end_turn",
    );
    writer.complete(&[], false);
    writer.end();
    let view = view(&writer);
    let run = &view.runs()[0];
    assert!(
        run.losses()
            .iter()
            .any(|loss| loss.pointer == "/steps/0/parts/0" && loss.what.contains("reasoning"))
    );
    let messages: Vec<Value> = run
        .messages()
        .map(|it| serde_json::to_value(it).unwrap())
        .collect();
    let steps: Vec<Value> = run
        .steps(writer.log.at)
        .iter()
        .map(|it| serde_json::to_value(it).unwrap())
        .collect();
    for it in &messages {
        schema::check("MessageObject", it);
    }
    for it in &steps {
        schema::check("RunStepObject", it);
    }
    let kinds: Vec<&Value> = steps.iter().map(|step| &step["type"]).collect();
    assert_eq!(
        kinds,
        ["message_creation", "tool_calls", "message_creation"]
    );
    let written: Vec<&Value> = [0, 2]
        .iter()
        .map(|n| &steps[*n]["step_details"]["message_creation"]["message_id"])
        .collect();
    let ids: Vec<&Value> = messages.iter().map(|it| &it["id"]).collect();
    assert_eq!(written, ids);
    let kinds: Vec<&Value> = messages[1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(kinds, ["text", "image_url", "refusal"]);
    assert!(
        messages
            .iter()
            .all(|it| it["run_id"] == run.id() && it["status"] == "completed")
    );
    // What a model call used is counted once, and the run has the sum.
    let used: u64 = steps
        .iter()
        .filter_map(|step| step["usage"]["total_tokens"].as_u64())
        .sum();
    assert_eq!(json!(used), only_run(&writer)["usage"]["total_tokens"]);
    for step in &steps {
        let id = RunStepId::read(step["id"].as_str().unwrap());
        let found = run.step(&id, writer.log.at).unwrap();
        assert_eq!(serde_json::to_value(found).unwrap(), *step);
    }
}

#[test]
fn a_run_says_how_it_ended() {
    let begun = |stop: &str| {
        let mut writer = Writer::new();
        writer.start(None);
        writer.respond(vec![text_part("Hi")], stop);
        writer
    };
    for (stop, status, details, reason) in [
        ("end_turn", "completed", json!(null), json!(null)),
        (
            "max_tokens",
            "incomplete",
            json!({"reason": "max_completion_tokens"}),
            json!({"reason": "max_tokens"}),
        ),
        (
            "content_filter",
            "incomplete",
            json!({}),
            json!({"reason": "content_filter"}),
        ),
    ] {
        let mut writer = begun(stop);
        writer.complete(&[], false);
        writer.end();
        let run = only_run(&writer);
        assert_eq!(
            (&run["status"], &run["incomplete_details"]),
            (&json!(status), &details)
        );
        let message = view(&writer).runs()[0].messages().next().unwrap();
        assert_eq!(
            serde_json::to_value(message).unwrap()["incomplete_details"],
            reason
        );
    }
    for (reason, status, code) in [
        ("error", "failed", json!("server_error")),
        ("max_steps", "failed", json!("server_error")),
        ("safety_halt", "failed", json!("invalid_prompt")),
        ("rate_limited", "failed", json!("rate_limit_exceeded")),
        ("timeout", "expired", json!(null)),
        ("user_cancelled", "cancelled", json!(null)),
    ] {
        let mut writer = begun("end_turn");
        let ending = Ending::Failed(interruption(reason));
        writer.log.run(Command::End { ending });
        let run = only_run(&writer);
        assert_eq!(
            (&run["status"], &run["last_error"]["code"]),
            (&json!(status), &code)
        );
        assert_eq!(run["usage"]["total_tokens"], 7);
        assert_eq!(run["failed_at"].is_i64(), status == "failed");
        assert_eq!(run["cancelled_at"].is_i64(), status == "cancelled");
        let error = view(&writer).runs()[0]
            .check_cancel(writer.log.at)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("Cannot cancel run with status '{status}'.")
        );
    }
}

#[test]
fn an_active_run_locks_its_thread() {
    let mut writer = Writer::new();
    writer.asks("call_1");
    let view = view(&writer);
    let run = view.active(writer.log.at).unwrap();
    let thread = "thread_0197b2c4000070008000000000000001";
    let error = run.check_message(writer.log.at).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "Can't add messages to {thread} while a run {} is active.",
            run.id()
        )
    );
    let error = run.check_run(writer.log.at).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("Thread {thread} already has an active run {}.", run.id())
    );
    let error = run.check_delete(writer.log.at).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("Can't delete {thread} while a run {} is active.", run.id())
    );
    assert!(run.check_cancel(writer.log.at).is_ok());
    let mut over = Writer::new();
    over.says("Hi");
    let view = self::view(&over);
    assert!(view.active(over.log.at).is_none());
    assert!(view.runs()[0].check_message(over.log.at).is_ok());
    assert!(view.runs()[0].check_run(over.log.at).is_ok());
    assert!(view.runs()[0].check_delete(over.log.at).is_ok());
}

#[test]
fn a_run_without_an_answer_of_a_model_has_used_nothing() {
    let mut writer = Writer::new();
    writer.start(None);
    assert_eq!(only_run(&writer)["usage"], json!(null));
    let ending = Ending::Failed(interruption("error"));
    writer.log.run(Command::End { ending });
    let none = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
    assert_eq!(only_run(&writer)["usage"], none);
}

#[test]
fn a_run_is_expired_when_the_time_is_up_that_it_was_given() {
    let mut writer = Writer::new();
    let assistant = Assistant::of_agent("ada", "m-1", None, start());
    let mut asked = CreateRun::read(&json!({"assistant_id": "ada"})).unwrap();
    assert_eq!(asked.time, Duration::from_mins(10));
    asked.time = Duration::from_secs(30);
    let options = asked.options(&assistant).value;
    writer.run = json!({"agent": "ada", "params": options});
    writer.asks("call_1");
    let view = view(&writer);
    let run = &view.runs()[0];
    let object = run.object(writer.log.at);
    assert_eq!(object.expires_at, Some(object.created_at + 30));
    let later = writer.log.at + SignedDuration::from_secs(30);
    assert_eq!(run.status(later), RunStatus::Expired);
    // It is queued again with what it waited for, and has begun long ago.
    let again = run.as_queued_again();
    assert_eq!(
        (again.status, again.started_at),
        (RunStatus::Queued, Some(object.created_at))
    );
}

#[test]
fn a_run_that_waits_is_expired_when_its_time_is_up() {
    let mut writer = Writer::asked(&json!({"assistant_id": "ada"}));
    writer.asks("call_1");
    let view = view(&writer);
    let run = &view.runs()[0];
    let later = writer.log.at + SignedDuration::from_secs(600);
    assert_eq!(run.status(writer.log.at), RunStatus::RequiresAction);
    assert!(!run.is_expired(writer.log.at) && run.is_expired(later));
    let object = serde_json::to_value(run.object(later)).unwrap();
    schema::check("RunObject", &object);
    assert_eq!(
        (
            &object["status"],
            &object["expires_at"],
            &object["required_action"]
        ),
        (&json!("expired"), &json!(null), &json!(null))
    );
    let step = serde_json::to_value(&run.steps(later)[0]).unwrap();
    schema::check("RunStepObject", &step);
    assert_eq!(step["status"], "expired");
    assert!(view.active(later).is_none());
    // A run that another view began has no end to its time.
    let mut writer = Writer::new();
    writer.asks("call_1");
    let view = self::view(&writer);
    assert_eq!(view.runs()[0].status(later), RunStatus::RequiresAction);
}

#[test]
fn a_run_that_is_expired_stays_so_whatever_comes_after_it() {
    let mut writer = Writer::asked(&json!({"assistant_id": "ada"}));
    writer.asks("call_1");
    let before = view(&writer);
    let execution = before.runs()[0].executions()[0].clone();
    let late = writer.log.at + SignedDuration::from_secs(601);
    let expected = before.runs()[0].steps(late);
    let said = writer.user("are you there?");
    let stopped = cancels(&writer.id(), &execution);
    for item in [said, stopped] {
        let mut log = crate::log::Log {
            state: writer.log.state.clone(),
            records: writer.log.records.clone(),
            at: late,
        };
        log.run(Command::Record { item });
        let after = ThreadView::of(&log.transcript());
        let run = &after.runs()[0];
        assert_eq!(run.status(log.at), RunStatus::Expired);
        assert_eq!(run.steps(log.at), expected);
    }
}

#[test]
fn a_run_whose_outputs_came_in_time_is_not_expired() {
    let mut writer = Writer::asked(&json!({"assistant_id": "ada"}));
    writer.asks("call_1");
    let item = writer.answer_item(&[("call_1", OpenKind::External)]);
    let run = writer.run.clone().into();
    writer.log.run(Command::Enqueue { item, run });
    let late = writer.log.at + SignedDuration::from_secs(601);
    assert_eq!(view(&writer).runs()[0].status(late), RunStatus::Queued);
}

#[test]
fn a_run_that_waits_can_be_stopped_and_is_left_behind_by_what_is_said_next() {
    let mut writer = Writer::new();
    writer.asks("call_1");
    let execution = view(&writer).runs()[0].executions()[0].clone();
    let id = writer.id();
    writer.log.run(Command::Record {
        item: cancels(&id, &execution),
    });
    let run = only_run(&writer);
    assert_eq!(
        (&run["status"], &run["required_action"]),
        (&json!("cancelled"), &json!(null))
    );
    for records in [true, false] {
        let mut writer = Writer::new();
        writer.asks("call_1");
        let item = writer.user("never mind");
        if records {
            writer.log.run(Command::Record { item });
        } else {
            writer.start(Some(item));
        }
        let view = view(&writer);
        assert_eq!(view.runs()[0].status(writer.log.at), RunStatus::Cancelled);
        let step = &view.runs()[0].steps(writer.log.at)[0];
        assert_eq!(step.status.name(), "cancelled");
    }
}

#[test]
fn outputs_that_wait_to_be_acted_on_make_the_run_queued() {
    let mut writer = Writer::new();
    writer.start(None);
    let calls: Vec<ToolPart> = ["a", "b"]
        .iter()
        .map(|id| ToolPart::call("look", id, "{}"))
        .collect();
    writer.respond(
        calls.iter().map(|it| it.write().unwrap()).collect(),
        "tool_use",
    );
    let left: Vec<_> = calls
        .iter()
        .map(|call| open(call, OpenKind::External))
        .collect();
    writer.complete(&left, false);
    writer.end();
    let first = writer.answer_item(&[("a", OpenKind::External)]);
    writer.start(Some(first));
    let second = writer.answer_item(&[("b", OpenKind::External)]);
    let run = writer.run.clone().into();
    writer.log.run(Command::Enqueue { item: second, run });
    assert_eq!(
        view(&writer).runs()[0].status(writer.log.at),
        RunStatus::InProgress
    );
    writer.respond(vec![calls[0].write().unwrap()], "tool_use");
    writer.put(0, &calls[0], &json!("x"));
    writer.complete(&left[1..], false);
    writer.end();
    let queued = view(&writer);
    assert_eq!(queued.runs()[0].status(writer.log.at), RunStatus::Queued);
    schema::check(
        "RunObject",
        &serde_json::to_value(queued.runs()[0].object(writer.log.at)).unwrap(),
    );
    writer.start(None);
    let running = view(&writer);
    assert_eq!(running.runs().len(), 1);
    assert_eq!(
        running.runs()[0].status(writer.log.at),
        RunStatus::InProgress
    );
}

#[test]
fn a_run_answers_a_thread_without_a_new_message() {
    let mut writer = Writer::new();
    let said = writer.user("Hi");
    let last = said.id.clone();
    writer.log.run(Command::Record { item: said });
    let id = writer.id();
    let item = trigger(&id, Some(&last));
    assert_eq!(item.item_type, ItemType::ItemReference);
    writer.start(Some(item));
    let made = view(&writer).runs()[0].as_queued();
    let made = serde_json::to_value(made).unwrap();
    schema::check("RunObject", &made);
    assert_eq!(
        (&made["status"], &made["started_at"]),
        (&json!("queued"), &json!(null))
    );
    writer.respond(vec![text_part("Hello")], "end_turn");
    writer.complete(&[], false);
    writer.end();
    assert_eq!(only_run(&writer)["status"], "completed");
    let view = view(&writer);
    let roles: Vec<&str> = view
        .messages()
        .filter_map(|it| it.object())
        .map(|it| it.role)
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
}

#[test]
fn a_run_is_incomplete_where_its_log_says_so_and_not_for_its_numbers() {
    for (cut_short, status, details) in [
        (None, "completed", json!(null)),
        (
            Some(StepOutcome::SPENT),
            "incomplete",
            json!({"reason": "max_completion_tokens"}),
        ),
        (Some("another_word"), "completed", json!(null)),
    ] {
        let body = json!({"assistant_id": "ada", "max_completion_tokens": 256});
        let mut writer = Writer::asked(&body);
        writer.start(None);
        // An agent may be done after a call, however few tokens are left.
        let call = ToolPart::call("weather", "call_1", r#"{"city":"Kyiv"}"#);
        let usage = json!({"inputTokens": 5, "outputTokens": 250});
        let response =
            json!({"provider": "p", "model": "m-2", "stopReason": "tool_use", "usage": usage});
        writer.log.run(Command::Respond {
            parts: vec![call.write().unwrap()],
            response: response.into(),
        });
        writer.put(0, &call, &json!("18 degrees"));
        let outcome = StepOutcome {
            cut_short: cut_short.map(str::to_owned),
            ..StepOutcome::default()
        };
        writer.log.run(Command::ImportStep {
            outcome,
            next: None,
        });
        writer.end();
        let run = only_run(&writer);
        assert_eq!(
            (&run["status"], &run["incomplete_details"]),
            (&json!(status), &details)
        );
    }
}

#[test]
fn of_an_answer_that_is_removed_its_run_has_the_step_that_wrote_it_and_what_it_used() {
    let mut writer = Writer::new();
    writer.start(None);
    let call = ToolPart::call("weather", "call_1", r#"{"city":"Kyiv"}"#);
    writer.respond(
        vec![text_part("I look."), call.write().unwrap()],
        "tool_use",
    );
    writer.put(1, &call, &json!("18 degrees"));
    writer.complete(&[], true);
    writer.respond(vec![text_part("It is warm.")], "max_tokens");
    writer.complete(&[], false);
    writer.end();
    let (before, now) = (view(&writer), writer.log.at);
    let run = &before.runs()[0];
    let steps = run.steps(now);
    assert_eq!((run.messages().count(), steps.len()), (2, 3));
    let entries = &writer.log.transcript().entries;
    let of_ours = entries.iter().find_map(|entry| match entry {
        Entry::Item(_) => None,
        Entry::Reaction(reaction) => Some(&reaction.steps),
    });
    for step in of_ours.unwrap() {
        let what = Removed::Step(step.step.id.clone());
        writer.log.run(Command::Remove { what });
    }
    let after = view(&writer);
    let left = &after.runs()[0];
    assert_eq!(left.messages().count(), 0);
    for message in run.messages() {
        assert_eq!(after.message(&message.id), None);
    }
    assert_eq!(left.object(now), run.object(now));
    assert_eq!(run.status(now), RunStatus::Incomplete);
    let of_messages = [&steps[0], &steps[2]].map(Clone::clone);
    assert_eq!(left.steps(now), of_messages);
    let text = serde_json::to_string(&left.steps(now)).unwrap();
    assert!(!text.contains("18 degrees"), "{text}");
}

#[test]
fn a_run_whose_waiting_call_is_removed_waits_for_nobody() {
    let mut writer = Writer::new();
    writer.asks("call_1");
    let mut transcript = writer.log.transcript();
    let steps = transcript.entries.iter().find_map(|entry| match entry {
        Entry::Item(_) => None,
        Entry::Reaction(reaction) => Some(&reaction.steps),
    });
    let id = steps.unwrap()[0].step.id.clone();
    transcript.note_removed([Removed::Step(id)]);
    let view = ThreadView::of(&transcript);
    assert_eq!(view.runs()[0].status(writer.log.at), RunStatus::Completed);
    assert!(view.active(writer.log.at).is_none());
}
