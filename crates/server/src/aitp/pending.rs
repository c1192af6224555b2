//! What is asked on a thread, for those whose protocol shows it in its own way.

use crate::state::Api;
use interop::aitp::{Party, Request, RequestQuestion, RequestState};
use jiff::Timestamp;
use runtime::{RuntimeError, ThreadRow};
use timeline::Seq;

/// The requests of a thread from this event of the log on that are open and that the one who began it may answer, of
/// those that are meant; in the order in which they were asked. The row says how far the thread has come. Costs what was
/// asked since.
pub(crate) async fn open_questions(
    api: &Api,
    row: &ThreadRow,
    first: Seq,
    is_meant: impl Fn(&Request) -> bool,
) -> Result<Vec<RequestQuestion>, RuntimeError> {
    let now = Timestamp::now();
    api.forms().fetch(api.aitp_states(), row, now).await?;
    let held = api.aitp_states().of(row).await?;
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
