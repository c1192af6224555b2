//! Answers to sub-agents' calls, and the runs in which the thread continues with them.

use super::answers::Reader;
use super::stream::RunEventsView;
use super::{VIA, token};
use crate::aitp::{BodyPointers, MessagePost};
use crate::error::ApiError;
use crate::routes::answers::ancestors::AnswerTarget;
use crate::routes::answers::item;
use interop::ag_ui::{RunInput, RunView};
use runtime::{Accepted, Addressed, AnswerRequest, ThreadContinuation};
use serde_json::{Value, json};

/// The call that an answer is for.
pub(super) struct DescendantCall {
    /// The key of the sub-agent's thread.
    pub(super) key: String,
    pub(super) call: String,
    /// The answer, as a part of an item.
    pub(super) part: Value,
    /// Its index in the body.
    pub(super) index: usize,
}

impl Reader {
    /// Checks that the answers are for descendants of this thread. Also refuses new messages in the same
    /// request, because they would abandon the sub-agents.
    pub(super) async fn check_descendants(
        &self,
        answers: &[DescendantCall],
        says_more: bool,
    ) -> Result<(), ApiError> {
        for answer in answers {
            let named = Some(answer.key.as_str());
            let to = self.thread.addressed(&answer.call, named, None);
            let pointer = || format!("/resume/{}/interruptId", answer.index);
            match to.await? {
                Addressed::To(found) if found == self.thread.key() => {
                    let what = "the run's own calls are answered by their own ids";
                    return Err(ApiError::field(pointer(), what));
                }
                Addressed::To(found) if found == answer.key && !says_more => {}
                Addressed::To(found) if found == answer.key => {
                    let what =
                        "what a sub-agent asks is answered in a run in which nothing else is said";
                    return Err(ApiError::field(pointer(), what));
                }
                Addressed::To(_) | Addressed::Ambiguous | Addressed::OtherThread => {
                    let what = "this thread is not one of a sub-agent beneath the run's";
                    return Err(ApiError::field(pointer(), what));
                }
            }
        }
        Ok(())
    }

    /// Posts answers to the threads of sub-agents. Returns what each thread accepted, with the thread's
    /// key.
    pub(super) async fn answer_descendants(
        &self,
        input: &RunInput,
        mut answers: Vec<DescendantCall>,
    ) -> Result<Vec<(String, Accepted)>, ApiError> {
        let Self { api, thread } = self;
        answers.sort_by(|a, b| a.key.cmp(&b.key));
        let mut taken = Vec::new();
        for of_key in answers.chunk_by(|a, b| a.key == b.key) {
            let Some(DescendantCall {
                key, index: place, ..
            }) = of_key.first()
            else {
                continue;
            };
            let parts: Vec<Value> = of_key.iter().map(|it| it.part.clone()).collect();
            let metadata = json!({"tenant": thread.tenant().as_str(), "via": VIA});
            let request = AnswerRequest {
                run: None,
                tenant: thread.tenant().clone(),
                key: key.clone(),
                item: item(api.mint(), Value::Array(parts).into(), metadata),
                token: Some(format!("{}:{key}", token(input)).into()),
            };
            let place = |_| BodyPointers::text(format!("/resume/{place}"));
            let speech = MessagePost::new(api, thread.caller());
            let accepted = speech.answer(request, (None, None), place).await?;
            taken.push((key.clone(), accepted));
        }
        Ok(taken)
    }

    /// The runs in which the thread continues after the answers to its own calls and to its descendants'
    /// calls.
    pub(super) async fn answer_target(
        &self,
        input: &RunInput,
        own: Option<Accepted>,
        beneath: &[(String, Accepted)],
    ) -> Result<RunEventsView, ApiError> {
        let own = own.map(|accepted| ThreadContinuation {
            item: Some(accepted.item_id),
            execution: accepted.execution_id,
            before: accepted.after,
        });
        let mut heard: Vec<ThreadContinuation> = own.into_iter().collect();
        // Not before all are taken: where the thread hears of one may depend on the next.
        for (target, accepted) in beneath {
            let goes_on = self.thread.has_continuation(target, accepted);
            heard.push(goes_on.await?);
        }
        let heard = AnswerTarget::of(&self.thread, heard).await?;
        let (thread, run) = (&input.thread_id, &input.run_id);
        let view = match heard.first.item {
            Some(item) => RunView::new(thread, run, item),
            None => RunView::running(thread, run, heard.first.execution),
        };
        Ok(RunEventsView {
            view: view.then_answering(heard.then),
            after: heard.before,
        })
    }
}
