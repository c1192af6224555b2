//! The actions of the forms of AITP's requests.

use super::VIA;
use super::actions::thread;
use super::form::{LongForm, PageForm};
use super::pages::PageParts;
use super::reply::{Done, chat_path, page};
use super::request_view::read_request;
use crate::aitp::refused::Refused;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::aitp::answer::{Declining, NewAnswer, post_answer, post_refusal};
use crate::sse::wants_json;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use interop::aitp::{Key, MessageRefusal, MessageViolation, RequestRefusal, RequestState};
use runtime::RequestToken;
use web::{CapabilityRequest, FilledForm, FormError, RequestPage};

/// Answers a request with the fields of its form.
pub(super) async fn answer(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    LongForm(form): LongForm,
) -> Result<Response, ApiError> {
    let (thread, request) = requested(&api, &caller, &form).await?;
    let location = location(&thread, &request);
    let answered = match request.answer_value(form.fields()) {
        Ok(value) => {
            let answer = NewAnswer {
                value,
                actor: form.optional("actor").map(str::to_owned),
                agent: None,
            };
            let token = token(&form, "answer");
            post_answer(api.clone(), thread, &request.id, (answer, token)).await
        }
        Err(errors) => Err(ApiError::InvalidRequestAnswer {
            pointer: String::new(),
            wrong: errors.into_iter().map(violation).collect(),
        }),
    };
    match answered {
        Ok(_) => Ok(Done::here().response(&headers, &location)),
        Err(ApiError::InvalidRequestAnswer { wrong, .. }) if !wants_json(&headers) => {
            let filled = FilledForm {
                fields: form.fields().to_vec(),
                errors: wrong.into_iter().map(form_error).collect(),
            };
            refused_page(&api, &caller, &request, &filled).await
        }
        Err(error) => Err(error),
    }
}

/// Declines a request.
pub(super) async fn decline(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let (thread, request) = requested(&api, &caller, &form).await?;
    let location = location(&thread, &request);
    let refusal = Declining {
        reason: form.optional("reason").map(str::to_owned),
        actor: form.optional("actor").map(str::to_owned),
        ..Declining::default()
    };
    let token = token(&form, "decline");
    post_refusal(api, thread, &request.id, (refusal, token)).await?;
    Ok(Done::here().response(&headers, &location))
}

/// The request that a form is about. A newer one with the same id is another request.
async fn requested(
    api: &Api,
    caller: &Caller,
    form: &PageForm,
) -> Result<(ThreadKey, CapabilityRequest), ApiError> {
    let thread = thread(api, caller, form)?;
    let id = form.required("request")?;
    let mut request = read_request(api, &thread.find().await?, id).await?;
    request.back = form.back().map(str::to_owned);
    if form.required("seq")? != request.seq.to_string() {
        let request = Key::read(id).ok_or(ApiError::RequestNotFound)?;
        let state = RequestState::Superseded;
        let refusal = RequestRefusal::Late { request, state };
        let turned = MessageRefusal::Refused { place: 0, refusal };
        return Err(ApiError::Refused(Box::new(Refused::at(turned, ""))));
    }
    Ok((thread, request))
}

/// The token of the form, so that it is sent once.
fn token(form: &PageForm, kind: &str) -> Option<RequestToken> {
    let token = form.optional("idempotency_key")?;
    Some(RequestToken::from(format!("{VIA}.{kind}:{token}")))
}

/// Where the request is shown, or the page that the form returns to.
fn location(thread: &ThreadKey, request: &CapabilityRequest) -> String {
    if let Some(back) = &request.back {
        return back.clone();
    }
    format!("{}#{}", chat_path(thread.key()), request.element())
}

async fn refused_page(
    api: &Api,
    caller: &Caller,
    request: &CapabilityRequest,
    filled: &FilledForm,
) -> Result<Response, ApiError> {
    let parts = PageParts::read(api, caller).await?;
    let shown = RequestPage {
        shell: parts.shell("The answer has errors", Some(&request.thread_key)),
        request,
        filled,
    };
    let mut response = page(shown.html());
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    Ok(response)
}

fn violation(error: FormError) -> MessageViolation {
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
