//! The open AITP requests of a thread, for protocols that show them in their own form.

use crate::state::Api;
use interop::aitp::{Party, Request, RequestQuestion, RequestState};
use jiff::Timestamp;
use runtime::{RuntimeError, ThreadRow};
use timeline::Seq;

/// The open requests of a thread from this event on, in the order of their messages. Only those that
/// `is_meant` selects and that the thread's initiator may answer. The row has the thread's tail. Costs
/// time proportional to the requests since that event.
pub(crate) async fn open_questions(
    api: &Api,
    row: &ThreadRow,
    first: Seq,
    is_meant: impl Fn(&Request) -> bool,
) -> Result<Vec<RequestQuestion>, RuntimeError> {
    let now = Timestamp::now();
    api.forms()
        .fetch(api.aitp_states(&row.tenant), row, now)
        .await?;
    let held = api.aitp_states(&row.tenant).of(row).await?;
    let Some(desk) = held.get() else {
        return Ok(Vec::new());
    };
    let ledger = desk.ledger();
    let since = ledger.requests().rev();
    let since = since.take_while(|request| request.seq >= first);
    let open = since.filter(|request| {
        is_meant(request)
            && request.state(now) == RequestState::Open
            && ledger.may_answer(&request.ask, &Party::Initiator).is_ok()
    });
    let mut open: Vec<RequestQuestion> = open.filter_map(|it| desk.question_about(it)).collect();
    open.reverse();
    Ok(open)
}
