//! Whether a caller may answer a request, by the checks that its answer will meet.

use super::answer::own_actors;
use crate::aitp::MessagePost;
use crate::auth::Scope;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::aitp::{AitpState, Request};
use timeline::ThreadStatus;

/// The actors that the caller may answer a request as; the thread's initiator if there are none. The error
/// says why it may not.
pub(crate) fn answering_actors(
    api: &Api,
    thread: &ThreadRef,
    desk: &AitpState,
    request: &Request,
) -> Result<Vec<String>, String> {
    let caller = thread.caller();
    if caller.check_scope(Scope::Write).is_err() {
        return Err("this key may only read".to_owned());
    }
    if thread.row().thread.status == ThreadStatus::Closed {
        return Err("this thread is closed".to_owned());
    }
    let post = MessagePost::new(api, caller);
    let check = |actor: Option<&str>| post.check_answerer(desk, actor, &request.ask);
    let own = own_actors(desk, caller);
    let mut refusal = None;
    let mut allowed = Vec::new();
    for actor in &own {
        match check(Some(actor)) {
            Ok(()) => allowed.push(actor.clone()),
            Err(why) => refusal = Some(why),
        }
    }
    if own.is_empty() {
        refusal = check(None).err();
    }
    match refusal {
        Some(why) if allowed.is_empty() => Err(why.to_string()),
        Some(_) | None => Ok(allowed),
    }
}
