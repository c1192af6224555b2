//! The actions of the forms of AITP's requests.

use super::form::{Action, LongAction};
use super::pages::PageParts;
use super::reply::{chat_path, page};
use super::request_view::read_request;
use crate::aitp::refused::Refused;
use crate::error::ApiError;
use crate::routes::aitp::answer::{Declining, NewAnswer, post_answer, post_refusal};
use crate::sse::wants_json;
use crate::threads::ThreadKey;
use axum::response::Response;
use http::StatusCode;
use interop::aitp::{Key, MessageRefusal, MessageViolation, RequestRefusal, RequestState};
use web::{CapabilityRequest, FilledForm, FormError, RequestPage};

/// Answers a request with the fields of its form.
pub(super) async fn answer(action: LongAction) -> Result<Response, ApiError> {
    let (thread, request) = requested(&action).await?;
    let location = location(&thread, &request);
    let answered = match request.answer_value(action.form.fields()) {
        Ok(value) => {
            let answer = NewAnswer {
                value,
                actor: action.form.optional("actor").map(str::to_owned),
                agent: None,
            };
            let answer = (answer, action.token(".answer"));
            post_answer(action.api.clone(), thread, &request.id, answer).await
        }
        Err(errors) => Err(ApiError::InvalidRequestAnswer {
            pointer: String::new(),
            wrong: errors.into_iter().map(violation).collect(),
        }),
    };
    match answered {
        Ok(_) => Ok(action.shown_at(&location)),
        Err(ApiError::InvalidRequestAnswer { wrong, .. }) if !wants_json(&action.headers) => {
            let filled = FilledForm {
                fields: action.form.fields().to_vec(),
                errors: wrong.into_iter().map(form_error).collect(),
            };
            refused_page(&action, &request, &filled).await
        }
        Err(error) => Err(error),
    }
}

/// Declines a request.
pub(super) async fn decline(action: Action) -> Result<Response, ApiError> {
    let (thread, request) = requested(&action).await?;
    let location = location(&thread, &request);
    let refusal = Declining {
        reason: action.form.optional("reason").map(str::to_owned),
        actor: action.form.optional("actor").map(str::to_owned),
        ..Declining::default()
    };
    let refusal = (refusal, action.token(".decline"));
    post_refusal(action.api.clone(), thread, &request.id, refusal).await?;
    Ok(action.shown_at(&location))
}

/// The request that a form is about. A newer one with the same id is another request.
async fn requested<const MAX: usize>(
    action: &Action<MAX>,
) -> Result<(ThreadKey, CapabilityRequest), ApiError> {
    let thread = action.thread()?;
    let id = action.form.required("request")?;
    let mut request = read_request(&action.api, &thread.find().await?, id).await?;
    request.back = action.form.back().map(str::to_owned);
    if action.form.required("seq")? != request.seq.to_string() {
        let request = Key::read(id).ok_or(ApiError::RequestNotFound)?;
        let state = RequestState::Superseded;
        let refusal = RequestRefusal::Late { request, state };
        let turned = MessageRefusal::Refused { place: 0, refusal };
        return Err(ApiError::Refused(Box::new(Refused::at(turned, ""))));
    }
    Ok((thread, request))
}

/// Where the request is shown, or the page that the form returns to.
fn location(thread: &ThreadKey, request: &CapabilityRequest) -> String {
    if let Some(back) = &request.back {
        return back.clone();
    }
    format!("{}#{}", chat_path(thread.key()), request.element())
}

async fn refused_page(
    action: &LongAction,
    request: &CapabilityRequest,
    filled: &FilledForm,
) -> Result<Response, ApiError> {
    let parts = PageParts::read(&action.api, &action.caller).await?;
    let shown = RequestPage {
        shell: parts.shell("The answer has errors", Some(&request.thread_key)),
        request,
        filled,
    };
    let mut response = page(shown.html());
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    Ok(response)
}

pub(super) fn violation(error: FormError) -> MessageViolation {
    MessageViolation {
        pointer: error.pointer,
        expected: error.expected,
    }
}

fn form_error(wrong: MessageViolation) -> FormError {
    FormError {
        pointer: wrong.pointer,
        expected: wrong.expected,
    }
}
