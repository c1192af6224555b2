//! Pending calls as interrupts, and the answers to them.

mod answer_text;

use super::error::RequestError;
use super::input::ClientToolResult;
use super::message::arguments;
use super::request::ResumeValues;
use crate::parts::ToolPart;
use answer_text::{WORDS, approval, output};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{ANSWER, OpenCall, OpenKind};

/// A call that waits for a person or a client.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptedCall {
    /// The id of the interrupt: the call's id. For a sub-agent's call, an `@` and the key of its
    /// thread follow.
    pub id: String,
    /// The key of the thread that has the call: the run's own, or a sub-agent's.
    pub thread_key: String,
    /// The call.
    pub tool_call_id: String,
    /// Whether the answer is the tool's result. Otherwise it is an approval or a denial.
    pub is_external: bool,
    /// The call's current state.
    tool: Option<ToolPart>,
}

impl InterruptedCall {
    /// A call, if it waits for a person or a client. `own` is the key of the requested thread.
    pub fn of(own: &str, thread_key: &str, call: &OpenCall) -> Option<Self> {
        let is_external = match call.kind {
            OpenKind::Approval => false,
            OpenKind::External => true,
            OpenKind::Others | OpenKind::Child => return None,
        };
        let tool_call_id = call.tool_call_id.clone();
        let id = if thread_key == own {
            tool_call_id.clone()
        } else {
            format!("{tool_call_id}@{thread_key}")
        };
        Some(Self {
            id,
            thread_key: thread_key.to_owned(),
            tool_call_id,
            is_external,
            tool: ToolPart::read(&call.part),
        })
    }

    /// The name of the tool; empty where the call can't be read.
    fn tool_name(&self) -> &str {
        let name = self.tool.as_ref().map(ToolPart::tool_name);
        name.unwrap_or_default()
    }

    /// The interrupt. An approval has the form of `LangChain`'s human-in-the-loop middleware.
    fn json(&self) -> Value {
        let name = self.tool_name();
        let args = self.tool.as_ref().map(ToolPart::arguments);
        let args = args.and_then(arguments).unwrap_or_default();
        if self.is_external {
            let call =
                json!({"name": name, "args": args, "id": self.tool_call_id, "type": "tool_call"});
            return json!({"id": self.id, "value": {"tool_call": call}});
        }
        let description = format!("May the tool {name:?} run?");
        json!({
            "id": self.id,
            "value": {
                "action_requests": [{"name": name, "args": args, "description": description}],
                "review_configs": [{
                    "action_name": name, "allowed_decisions": ["approve", "edit", "reject"],
                }],
            },
        })
    }
}

/// The interrupts of pending calls.
pub fn interrupts(asked: &[InterruptedCall]) -> Vec<Value> {
    asked.iter().map(InterruptedCall::json).collect()
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeAnswer {
    /// The thread that has the call.
    pub thread_key: String,
    /// The answer, as a part of the log's.
    pub part: Value,
}

/// The answers that continue a waiting thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    /// The answers; one at least.
    pub answers: Vec<ResumeAnswer>,
}

impl Resume {
    /// Reads answers to the pending calls. `over` are the ids from [`Resume::unknown`] whose calls are
    /// no longer pending.
    pub fn of_answers(
        answers: &ResumeValues,
        (asked, over): (&[InterruptedCall], &BTreeSet<String>),
    ) -> Result<Self, RequestError> {
        let pointer = "/command/resume";
        match answers {
            ResumeValues::Command(resume) => Self::read(resume, pointer, (asked, over)),
            ResumeValues::ById(answers) => Self::by_id(answers, pointer, (asked, &BTreeSet::new())),
        }
    }

    /// The members of an answer that are neither interrupts nor keywords. They may be ids of calls
    /// that are no longer pending. Otherwise the answer is a result with these members.
    pub fn unknown<'a>(answers: &'a ResumeValues, asked: &[InterruptedCall]) -> Vec<&'a str> {
        let members = match answers {
            ResumeValues::Command(Value::Object(members)) => members,
            ResumeValues::Command(_) | ResumeValues::ById(_) => return Vec::new(),
        };
        let ids = members.keys().map(String::as_str);
        let ids = ids.filter(|id| !WORDS.contains(id) && !asked.iter().any(|it| it.id == *id));
        ids.collect()
    }

    /// Reads `command.resume` for the pending calls:
    ///
    /// - an object with an interrupt's id as a member, whether that is pending or not: one answer for
    ///   each member;
    /// - `{"decisions": […]}`: one decision for each pending approval, in order;
    /// - any value, if exactly one call is pending: that call's answer.
    ///
    /// An approval is answered by `true` or `false`, or by an object that contains the decision. The
    /// result of a client's tool is any value. An approval is never inferred from words.
    fn read(
        resume: &Value,
        pointer: &str,
        (asked, over): (&[InterruptedCall], &BTreeSet<String>),
    ) -> Result<Self, RequestError> {
        if let Some(map) = resume.as_object() {
            let is_id = |id: &String| over.contains(id) || asked.iter().any(|it| it.id == *id);
            if map.keys().any(is_id) {
                return Self::by_id(map, pointer, (asked, over));
            }
            if map.len() == 1
                && let Some(decisions) = map.get("decisions").filter(|_| !asked.is_empty())
            {
                return Self::decided(decisions, &format!("{pointer}/decisions"), asked);
            }
        }
        if let [only] = asked {
            return Self::of([(only, resume, pointer.to_owned())]);
        }
        if asked.is_empty() {
            return Err(RequestError::conflict(
                pointer,
                "nothing waits on this thread",
            ));
        }
        let ids: Vec<&str> = asked.iter().map(|it| it.id.as_str()).collect();
        let what = format!(
            "{} calls wait: expected an object with an answer for each id of an interrupt ({})",
            ids.len(),
            ids.join(", ")
        );
        Err(RequestError::at(pointer, what))
    }

    /// Reads answers by the ids of their interrupts. Other keys are an error.
    fn by_id(
        answers: &Map<String, Value>,
        pointer: &str,
        (asked, over): (&[InterruptedCall], &BTreeSet<String>),
    ) -> Result<Self, RequestError> {
        let named = answers.iter().map(|(id, answer)| {
            let pointer = format!("{pointer}/{}", crate::request::token(id));
            match asked.iter().find(|it| it.id == *id) {
                Some(call) => Ok((call, answer, pointer)),
                None if over.contains(id) => {
                    let what = "is answered or left behind; a result with such a member is said as {\"output\": …}";
                    Err(RequestError::conflict(pointer, what))
                }
                None => Err(RequestError::no_interrupt(id)),
            }
        });
        let named: Vec<_> = named.collect::<Result<_, RequestError>>()?;
        Self::of(named)
    }

    /// The call that the answers name, and the key of the sub-agent's thread if the id contains one.
    /// It is read from the ids alone, without the pending calls. For an object of ids, the first id is
    /// used.
    pub fn named(answers: &ResumeValues) -> Option<(&str, Option<&str>)> {
        let ids = match answers {
            ResumeValues::Command(resume) => resume.as_object()?,
            ResumeValues::ById(answers) => answers,
        };
        let id = ids.keys().next()?;
        Some(match id.split_once('@') {
            Some((call, key)) => (call, Some(key)),
            None => (id, None),
        })
    }

    /// Results of the client's tools among the messages of an input.
    pub fn of_results(
        results: &[ClientToolResult],
        asked: &[InterruptedCall],
    ) -> Result<Self, RequestError> {
        let answers = results.iter().map(|result| {
            let mut fitting = asked
                .iter()
                .filter(|it| it.tool_call_id == result.tool_call_id);
            let call = match (fitting.next(), fitting.next()) {
                (Some(call), None) if call.is_external => call,
                (None, _) => return Err(RequestError::at(&*result.pointer, "no such call waits")),
                (Some(_), None) => {
                    let what = "this call waits for an approval: resume it with a command";
                    return Err(RequestError::at(&*result.pointer, what));
                }
                (Some(_), Some(_)) => {
                    let what = "several calls have this id: resume with a command";
                    return Err(RequestError::at(&*result.pointer, what));
                }
            };
            let key = if result.is_error {
                "errorText"
            } else {
                "output"
            };
            let part = json!({
                "type": ANSWER, "toolCallId": call.tool_call_id, key: result.text,
            });
            let thread_key = call.thread_key.clone();
            Ok(ResumeAnswer { thread_key, part })
        });
        Ok(Self {
            answers: answers.collect::<Result<_, _>>()?,
        })
    }

    fn decided(
        decisions: &Value,
        pointer: &str,
        asked: &[InterruptedCall],
    ) -> Result<Self, RequestError> {
        let approvals: Vec<&InterruptedCall> = asked.iter().filter(|it| !it.is_external).collect();
        let decisions = decisions.as_array().map(Vec::as_slice).unwrap_or_default();
        if decisions.len() != approvals.len() || approvals.is_empty() {
            let what = format!(
                "{} approvals wait: expected a list of as many decisions",
                approvals.len()
            );
            return Err(RequestError::at(pointer, what));
        }
        let decided = approvals.into_iter().zip(decisions).enumerate();
        Self::of(
            decided.map(|(place, (call, answer))| (call, answer, format!("{pointer}/{place}"))),
        )
    }

    fn of<'a>(
        answers: impl IntoIterator<Item = (&'a InterruptedCall, &'a Value, String)>,
    ) -> Result<Self, RequestError> {
        let answers = answers.into_iter().map(|(call, answer, pointer)| {
            let says = if call.is_external {
                output(answer)
            } else {
                approval(answer, &pointer, call.tool_name())?
            };
            let mut part = json!({"type": ANSWER, "toolCallId": call.tool_call_id});
            if let Value::Object(part) = &mut part {
                part.extend(says);
            }
            let thread_key = call.thread_key.clone();
            Ok(ResumeAnswer { thread_key, part })
        });
        Ok(Self {
            answers: answers.collect::<Result<_, RequestError>>()?,
        })
    }
}

#[cfg(test)]
mod tests;
