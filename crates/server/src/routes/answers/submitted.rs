//! Answers, and the thread that receives them.

use super::{ancestors, item};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::run::RunSelector;
use runtime::{Accepted, Addressed, AnswerRequest, RequestToken};
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Answer, Payload, Seq};

/// Maximum number of answers in one request.
const MAX_ANSWERS: usize = 256;
/// Maximum length of an answerer's name, in bytes.
const MAX_ACTOR_BYTES: usize = 255;

/// Answers that passed the checks.
pub(crate) struct SubmittedAnswers {
    content: Payload,
    /// For each answer, the key of its call's thread, if the answer names it.
    named: Vec<Option<String>>,
    metadata: Value,
    /// The actor of the answers.
    actor: Option<String>,
}

/// Accepted answers.
pub(crate) struct Answered {
    pub(crate) accepted: Accepted,
    /// The key of the thread with the calls.
    pub(crate) target: String,
}

impl SubmittedAnswers {
    /// Checks the answers, and that the caller may speak as the actor. `via` is the protocol.
    pub(crate) fn read(
        caller: &Caller,
        mut answers: Vec<Map<String, Value>>,
        actor: Option<&str>,
        via: &str,
    ) -> Result<Self, ApiError> {
        let named = named(&mut answers)?;
        let content = content(answers)?;
        check_actor(caller, actor)?;
        let metadata = json!({"actor": actor, "tenant": caller.tenant.as_str(), "via": via});
        Ok(Self {
            content,
            named,
            metadata,
            actor: actor.map(str::to_owned),
        })
    }

    /// Posts the answers to the thread with the calls: this one, or that of a sub-agent.
    pub(crate) async fn answer(
        self,
        api: &Api,
        thread: &ThreadKey,
        token: Option<RequestToken>,
    ) -> Result<Answered, ApiError> {
        let asked = (&self.content, self.named.as_slice(), token.as_deref());
        let target = target(thread, asked).await?;
        let request = AnswerRequest {
            run: None,
            tenant: thread.tenant().clone(),
            key: target.clone(),
            item: item(api.mint(), self.content, self.metadata),
            token,
        };
        let speech = MessagePost::new(api, thread.caller());
        let place = |_| BodyPointers::text("/answers").by("/actor");
        let accepted = speech.answer(request, (self.actor, None), place).await?;
        Ok(Answered { accepted, target })
    }
}

impl Answered {
    /// The run in which this thread continues, and the event before it.
    pub(crate) async fn went_on(self, thread: &ThreadKey) -> Result<(RunSelector, Seq), ApiError> {
        let accepted = self.accepted;
        if self.target == thread.key() {
            Ok((RunSelector::answering(accepted.item_id), accepted.after))
        } else {
            ancestors::went_on(thread, &self.target, &accepted).await
        }
    }
}

/// Refuses an actor with an invalid name, or one that the key may not speak as.
fn check_actor(caller: &Caller, actor: Option<&str>) -> Result<(), ApiError> {
    let Some(actor) = actor else { return Ok(()) };
    if actor.len() > MAX_ACTOR_BYTES {
        let what = format!("an actor has at most {MAX_ACTOR_BYTES} bytes");
        return Err(ApiError::field("/actor", what));
    }
    caller.check_actor(actor, "/actor")
}

/// Removes the key of its call's thread from each answer.
fn named(answers: &mut [Map<String, Value>]) -> Result<Vec<Option<String>>, ApiError> {
    let named =
        (0..).zip(answers).map(
            |(at, answer): (usize, _)| match answer.remove("threadKey") {
                None => Ok(None),
                Some(Value::String(key)) => Ok(Some(key)),
                Some(_) => {
                    let pointer = format!("/answers/{at}/threadKey");
                    Err(ApiError::field(pointer, "a thread's key is a string"))
                }
            },
        );
    named.collect()
}

/// The key of the thread that the answers are for.
async fn target(
    thread: &ThreadKey,
    (content, named, token): (&Payload, &[Option<String>], Option<&str>),
) -> Result<String, ApiError> {
    let answers =
        Answer::read(Some(content)).map_err(|error| ApiError::content("/answers", &error))?;
    let mut target = None;
    for (at, (answer, named)) in answers.iter().zip(named).enumerate() {
        let pointer = format!("/answers/{at}/threadKey");
        let call = answer.tool_call_id.as_str();
        let named = named.as_deref();
        let found = thread.addressed(call, named, token);
        let found = match found.await? {
            Addressed::To(found) => found,
            Addressed::Ambiguous => {
                let what = "several sub-agents have a call of this id: name the thread";
                return Err(ApiError::field(pointer, what));
            }
            Addressed::OtherThread => {
                let what = "this thread is not one of a sub-agent beneath the other";
                return Err(ApiError::field(pointer, what));
            }
        };
        match &target {
            None => target = Some(found),
            Some(known) if *known == found => {}
            Some(_) => {
                let what = "the answers of one request are for calls of one thread";
                return Err(ApiError::field(pointer, what));
            }
        }
    }
    Ok(target.unwrap_or_else(|| thread.key().to_owned()))
}

fn content(answers: Vec<Map<String, Value>>) -> Result<Payload, ApiError> {
    if answers.is_empty() || answers.len() > MAX_ANSWERS {
        let what = format!("there are 1 to {MAX_ANSWERS} answers");
        return Err(ApiError::field("/answers", what));
    }
    let parts = answers.into_iter().map(|mut answer| {
        answer.insert("type".to_owned(), ANSWER.into());
        Value::Object(answer)
    });
    let content = Payload::from(Value::Array(parts.collect()));
    Answer::read(Some(&content)).map_err(|error| ApiError::content("/answers", &error))?;
    Ok(content)
}
