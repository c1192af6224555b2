//! The errors of AITP: speakers, capability messages, and changes of participants.

use super::{ApiError, Verdict};
use crate::aitp::refused::{Refused, Why};
use http::StatusCode;
use interop::aitp::{
    ChangeRefused, ChangeTurned, Key, MayNotSpeak, MessageRefusal, MessageViolation, RequestRefusal,
};
use runtime::RuntimeError;
use serde_json::{Value, json};

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> Self {
        let RuntimeError::TurnedAway(refused) = error else {
            return Self::Runtime(error);
        };
        match refused.downcast::<Refused>() {
            Ok(refused) => Self::Refused(refused),
            Err(other) => Self::Runtime(RuntimeError::TurnedAway(other)),
        }
    }
}

/// The verdict on a refusal.
pub(super) fn verdict(refused: &Refused) -> Verdict {
    let verdict = match &refused.why {
        Why::Message(turned) => of_message(turned),
        Why::Change(turned) => of_change(turned),
        Why::Actor(_) => forbidden_actor(),
        Why::Link(_) => Verdict::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field"),
    };
    if refused.pointer.is_empty() {
        return verdict;
    }
    verdict.at(refused.pointer.as_str())
}

fn forbidden_actor() -> Verdict {
    use StatusCode as S;
    Verdict::new(S::FORBIDDEN, "forbidden_actor")
}

fn of_message(turned: &MessageRefusal) -> Verdict {
    use StatusCode as S;
    match turned {
        MessageRefusal::PartyBinding(error) => of_speaker(error),
        MessageRefusal::Actor(_) => Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_actor"),
        MessageRefusal::NotAMessage | MessageRefusal::TooManyMessages(_) => unfit(&[]),
        MessageRefusal::Unfit { wrong, .. } => unfit(wrong),
        MessageRefusal::Refused { refusal, .. } => of_refusal(refusal),
        MessageRefusal::Schemas(_) => {
            Verdict::hidden(S::INTERNAL_SERVER_ERROR, "internal", "the server failed")
        }
    }
}

fn of_speaker(error: &MayNotSpeak) -> Verdict {
    use StatusCode as S;
    match error {
        MayNotSpeak::NotBoundToIt(_) | MayNotSpeak::Unnamed(_) => forbidden_actor(),
        MayNotSpeak::Unknown(_)
        | MayNotSpeak::Left(_)
        | MayNotSpeak::OtherRole { .. }
        | MayNotSpeak::Nobody => Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_actor"),
    }
}

/// An invalid capability message, or one that does not fit the request it answers.
fn unfit(wrong: &[MessageViolation]) -> Verdict {
    use StatusCode as S;
    let verdict = Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_capability_message");
    if wrong.is_empty() {
        return verdict;
    }
    verdict.with(json!({ "violations": violations(wrong) }))
}

/// The violations, each with its JSON pointer.
pub(crate) fn violations(wrong: &[MessageViolation]) -> Value {
    let wrong = wrong.iter();
    wrong
        .map(|it| json!({"pointer": it.pointer, "expected": it.expected}))
        .collect()
}

fn of_refusal(refusal: &RequestRefusal) -> Verdict {
    use StatusCode as S;
    let conflict = |reason: &str| {
        let details = json!({ "reason": reason });
        Verdict::new(S::CONFLICT, "request_refused").with(details)
    };
    let about = |reason: &str, request: &Key| {
        let details = json!({"reason": reason, "request": request.text()});
        Verdict::new(S::CONFLICT, "request_refused").with(details)
    };
    let forbidden = |reason: &str| {
        let details = json!({ "reason": reason });
        Verdict::new(S::FORBIDDEN, "request_forbidden").with(details)
    };
    match refusal {
        RequestRefusal::NotOneMessage => unfit(&[]),
        RequestRefusal::Unfit(wrong) => unfit(wrong),
        RequestRefusal::Unknown(_) => conflict("unknown"),
        RequestRefusal::NothingOpen(_) => conflict("nothing_open"),
        RequestRefusal::Ambiguous(keys) => {
            let keys: Vec<String> = keys.iter().map(Key::text).collect();
            let details = json!({"reason": "ambiguous", "requests": keys});
            conflict("ambiguous").with(details)
        }
        RequestRefusal::Late { request, state } => {
            let details = json!({"reason": "late", "request": request.text(), "state": state});
            conflict("late").with(details)
        }
        RequestRefusal::AnsweredBefore(request) => about("answered_before", request),
        RequestRefusal::NotAnswered(request) => about("not_answered", request),
        RequestRefusal::IdInUse(request) => about("id_in_use", request),
        RequestRefusal::TooManyOpen => conflict("too_many_open"),
        RequestRefusal::TooManyAnswers => conflict("too_many_answers"),
        RequestRefusal::OwnRequest(_) => forbidden("own_request"),
        RequestRefusal::NotTheAsker(_) => forbidden("not_the_asker"),
        RequestRefusal::NotAnActor { .. } => forbidden("not_an_actor"),
        RequestRefusal::NotDeclared { .. } => forbidden("not_declared"),
    }
}

fn of_change(turned: &ChangeTurned) -> Verdict {
    use StatusCode as S;
    match turned {
        ChangeTurned::OtherPrincipal(_) => forbidden_actor(),
        ChangeTurned::PartyBinding(MayNotSpeak::Unknown(_) | MayNotSpeak::Left(_))
        | ChangeTurned::Refused(ChangeRefused::Absent(_)) => {
            Verdict::new(S::NOT_FOUND, "actor_not_found")
        }
        ChangeTurned::PartyBinding(error) => of_speaker(error),
        ChangeTurned::Refused(ChangeRefused::Unfit(_)) => {
            Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_actor")
        }
        ChangeTurned::Refused(
            ChangeRefused::Present(_)
            | ChangeRefused::Taken(_)
            | ChangeRefused::OtherInitiator(_)
            | ChangeRefused::UnnamedInitiator
            | ChangeRefused::TooMany,
        ) => Verdict::new(S::CONFLICT, "actor_refused"),
        ChangeTurned::Encoding(_) => {
            Verdict::hidden(S::INTERNAL_SERVER_ERROR, "internal", "the server failed")
        }
    }
}
