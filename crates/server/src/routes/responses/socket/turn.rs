//! The responses of one connection, one at a time.

use super::super::continuation::StartedResponse;
use super::super::create::read;
use super::super::start::{LockedResponse, begin};
use super::{Disconnected, Incoming, Line};
use crate::auth::{Caller, Scope};
use crate::body::parse;
use crate::error::ApiError;
use crate::error::openai;
use crate::guard::check_rates;
use crate::pause::check_pause;
use crate::state::Api;
use futures_util::StreamExt;
use interop::responses::{CreateRequest, EventFraming, ResponseOf, ResponseStream, Status};
use serde_json::Value;

/// Makes the client's responses until it disconnects.
pub(super) async fn take_turns(api: &Api, caller: &Caller, line: &mut Line) {
    let mut held = None;
    while let Ok(message) = line.next().await {
        let done = match Box::pin(begun(api, caller, message, &mut held)).await {
            Ok(begun) => made(begun, line, &mut held).await,
            Err(error) => line.refuse(&error).await,
        };
        if done.is_err() {
            return;
        }
    }
}

/// Starts the response that a message requests.
async fn begun(
    api: &Api,
    caller: &Caller,
    message: Incoming,
    held: &mut Option<LockedResponse>,
) -> Result<StartedResponse, ApiError> {
    // Before it is read: what can't be read is counted, too.
    let admitted = admit(api, caller);
    let read = match message.text {
        Ok(text) => {
            let max_depth = api.app().config().server.max_depth;
            parse(text, max_depth, message.lease.clone()).await
        }
        Err(error) => Err(error),
    };
    let message: Value = match read {
        Ok(message) => message,
        Err(error) => {
            // Which one it was to go on with, nobody can tell.
            held.take();
            admitted?;
            return Err(error);
        }
    };
    let begun = match admitted {
        Ok(()) => asked(api, caller, &message, held).await,
        Err(error) => Err(error),
    };
    if begun.is_err() {
        // A response is no longer gone on with once that was tried in vain.
        let previous = message["previous_response_id"].as_str();
        held.take_if(|held| Some(held.id.as_str()) == previous);
    }
    begun
}

async fn asked(
    api: &Api,
    caller: &Caller,
    message: &Value,
    held: &mut Option<LockedResponse>,
) -> Result<StartedResponse, ApiError> {
    let request = CreateRequest::read_socket(message)?;
    Box::pin(begin(api, caller, read(request), None, held)).await
}

/// Whether the caller may still make responses. The caller's key or limits may have changed since the
/// connection opened.
fn admit(api: &Api, caller: &Caller) -> Result<(), ApiError> {
    if !api.app().config().is_development() && !api.app().keys().has(caller) {
        return Err(ApiError::Unauthorized);
    }
    caller.check_scope(Scope::Write)?;
    check_pause(api, caller)?;
    check_rates(api, caller)
}

/// Sends the events of a response, and holds the response if it is not stored and can be continued.
async fn made(
    begun: StartedResponse,
    line: &mut Line,
    held: &mut Option<LockedResponse>,
) -> Result<(), Disconnected> {
    let mut stream = ResponseStream::new(begun.of.clone(), EventFraming::Lines);
    let mut follow = match begun.follow().await {
        Ok(follow) => follow,
        Err(error) => return line.refuse(&error.into()).await,
    };
    let mut out = String::new();
    while !stream.is_over() {
        tokio::select! {
            biased;
            happened = follow.next() => match happened {
                Some(Ok(logged)) => stream.apply(&logged.record, &mut out),
                Some(Err(error)) => {
                    stream.fail(&openai::error_body(&error.into()).1, &mut out);
                    tell(line, &mut out).await?;
                    return Ok(());
                }
                // The log ends only when the server does.
                None => return Err(Disconnected),
            },
            attended = line.attend() => attended?,
        }
        tell(line, &mut out).await?;
    }
    let can_go_on = matches!(stream.status(), Status::Completed | Status::Incomplete);
    let execution = match begun.of {
        ResponseOf::Execution(execution) => Some(execution),
        ResponseOf::Trigger(_) => None,
    };
    // Else the one before stays held, which this one has not gone on with.
    if let (Some(passing), Some(execution), Some(id)) = (begun.ephemeral, execution, stream.id())
        && can_go_on
    {
        *held = Some(LockedResponse {
            id,
            execution,
            ephemeral: passing,
        });
    }
    Ok(())
}

/// Sends what was written: each line is a message.
async fn tell(line: &mut Line, out: &mut String) -> Result<(), Disconnected> {
    for event in out.lines() {
        line.send_text(event).await?;
    }
    out.clear();
    Ok(())
}
