//! Lists of tasks.
//!
//! They are ordered by context, last changed first, and within a context by message, last first. So a
//! page costs time proportional to the page, however long the threads are. A page may be short and still
//! have a next page, if few of the tasks match.

use super::lookup::Task;
use super::pending::waiting;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use crate::threads::listing::visible;
use interop::a2a::{ListTasks, RequestError, TaskOptions, TaskRun};
use interop::ids::{self, THREAD};
use jiff::Timestamp;
use runtime::{Filter, Landmark, PageRequest, Position, ThreadPage, ThreadRow, ThreadRows};
use serde_json::{Value, json};
use timeline::{ItemId, ThreadId};

/// Maximum number of thread pages that a request reads.
const MAX_LOOKS: usize = 200;
/// Maximum number of threads that one request skips because they have not changed since the requested
/// time.
const MAX_PASSED: usize = 10_000;
/// Number of threads looked up at once.
const THREADS: usize = 50;

/// Where a page ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    /// Number of tasks on this page and the earlier ones.
    n_tasks: usize,
    /// The number of the thread's last change, which orders the list.
    change: u64,
    thread: ThreadId,
    /// Where in the thread.
    before: Position,
    /// The last task listed of this thread, if the page ends within the thread.
    item: Option<ItemId>,
}

impl Token {
    fn write(&self) -> String {
        let thread = self.thread.as_str();
        let item = self.item.as_ref();
        let task = item.and_then(|item| ids::task_id(thread, item.as_str()));
        format!(
            "{}.{}.{}.{thread}.{}",
            self.n_tasks,
            self.change,
            self.before.0,
            task.unwrap_or_default()
        )
    }

    fn read(text: &str) -> Option<Self> {
        let mut fields = text.splitn(5, '.');
        let n_tasks = fields.next()?.parse().ok()?;
        let change = fields.next()?.parse().ok()?;
        let before = Position(fields.next()?.parse().ok()?);
        let thread = ThreadId::from(fields.next()?);
        let item = match fields.next()? {
            "" => None,
            task => Some(ItemId::from(ids::read_task_id(task)?.1)),
        };
        Some(Self {
            n_tasks,
            change,
            thread,
            before,
            item,
        })
    }
}

/// A page that is being filled.
struct Lister<'a> {
    api: &'a Api,
    caller: &'a Caller,
    request: &'a ListTasks,
    tasks: Vec<Value>,
    /// Number of tasks on the earlier pages.
    n_before: usize,
    n_looks: usize,
    n_passed: usize,
    next: Option<Token>,
}

/// Lists tasks; `pointer` is the JSON pointer of the request.
pub(super) async fn list(
    api: &Api,
    caller: &Caller,
    request: &ListTasks,
    pointer: &str,
) -> Result<Value, ApiError> {
    let token = request.page_token.as_deref().map(|text| {
        let what = "expected the nextPageToken of a page";
        let wrong = || RequestError::param(format!("{pointer}/pageToken"), what);
        Token::read(text).ok_or_else(wrong)
    });
    let token = token.transpose()?;
    let mut lister = Lister {
        api,
        caller,
        request,
        tasks: Vec::new(),
        n_before: token.as_ref().map_or(0, |token| token.n_tasks),
        n_looks: 0,
        n_passed: 0,
        next: None,
    };
    if let Some(context) = &request.context_id {
        if let Some(found) = ThreadRef::find(api, caller, THREAD, context).await? {
            lister.thread(&found, token.as_ref()).await?;
        }
    } else {
        lister.threads(token).await?;
    }
    Ok(lister.page())
}

impl Lister<'_> {
    fn page(self) -> Value {
        let n_tasks = self.n_before.saturating_add(self.tasks.len());
        let next = self.next.map(|token| Token { n_tasks, ..token });
        json!({
            "tasks": self.tasks,
            "pageSize": self.request.page_size,
            // Nothing is counted that is not on a page: this is exact on the last one.
            "totalSize": n_tasks.saturating_add(usize::from(next.is_some())),
            "nextPageToken": next.map(|token| token.write()).unwrap_or_default(),
        })
    }

    /// Goes through all threads.
    async fn threads(&mut self, token: Option<Token>) -> Result<(), ApiError> {
        let mut after = None;
        if let Some(token) = token {
            let found = ThreadRef::find_by_id(self.api, self.caller, &token.thread).await?;
            if let Some(found) = found {
                self.thread(&found, Some(&token)).await?;
            }
            after = Some(token.change);
        }
        while self.next.is_none() {
            let page = ThreadRows {
                after: after.take(),
                limit: THREADS,
                ..ThreadRows::default()
            };
            let (rows, next) = visible(self.api, self.caller, page).await?;
            after = rows.last().map(|row| row.change);
            for row in rows {
                if self.next.is_some() {
                    break;
                }
                // No task has changed after its thread.
                if self
                    .request
                    .after
                    .is_none_or(|since| changed(&row) >= since)
                {
                    let thread = ThreadRef::authorise(
                        self.api.runtime(&self.caller.tenant),
                        self.caller,
                        row,
                    )?;
                    self.thread(&thread, None).await?;
                    continue;
                }
                self.n_passed += 1;
                if self.n_passed >= MAX_PASSED {
                    self.next = Some(self.token(&row, None, Position(0), None));
                }
            }
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Lists the tasks of a thread, from its end or from where the last page ended.
    async fn thread(&mut self, thread: &ThreadRef, token: Option<&Token>) -> Result<(), ApiError> {
        let token = token.filter(|token| token.thread == *thread.id());
        let mut last = token.and_then(|token| token.item.clone());
        let mut before = token.map_or(Position::END, |token| token.before);
        loop {
            if self.n_looks >= MAX_LOOKS {
                self.next = Some(self.token(thread.row(), token, before, last));
                return Ok(());
            }
            self.n_looks += 1;
            let n = self.request.page_size;
            let page = PageRequest::Before { before, n };
            let page = thread.page(page, Filter::Facts);
            let ThreadPage {
                transcript,
                first,
                more,
                ..
            } = page.await?;
            let mut runs = TaskRun::all(&transcript);
            // An execution is never cut, so a piece may have tasks again that stood on the page before.
            if let Some(place) = runs
                .iter()
                .position(|run| Some(run.item()) == last.as_ref())
            {
                runs.truncate(place);
            }
            for run in runs.iter().rev() {
                if self.tasks.len() == self.request.page_size {
                    let place = match &last {
                        Some(item) => {
                            let landmark = Landmark::Item(item);
                            thread.position_of(landmark).await?
                        }
                        None => None,
                    };
                    let before = place.unwrap_or(before);
                    self.next = Some(self.token(thread.row(), token, before, last));
                    return Ok(());
                }
                self.task(thread, run).await?;
                last = Some(run.item().clone());
            }
            if !more || first >= before {
                return Ok(());
            }
            before = first;
        }
    }

    fn token(
        &self,
        row: &ThreadRow,
        token: Option<&Token>,
        before: Position,
        item: Option<ItemId>,
    ) -> Token {
        Token {
            n_tasks: self.n_before,
            // Where the list of threads goes on, even if this one has changed since.
            change: token.map_or(row.change, |token| token.change),
            thread: row.thread.id.clone(),
            before,
            item,
        }
    }

    /// Lists a task if it matches the request.
    async fn task(&mut self, thread: &ThreadRef, run: &TaskRun<'_>) -> Result<(), ApiError> {
        let request = self.request;
        let task = Task::of(thread, run.item())?;
        let more = task.more(run, Filter::Facts).await?;
        let pointed = task.pointed(run).await?;
        let run = run
            .clone()
            .with_continuations(&more)
            .answering(pointed.as_ref());
        if request.after.is_some_and(|after| run.since() < after) {
            return Ok(());
        }
        let waiting = waiting(self.api, thread, &run).await?;
        let state = run.state(&waiting);
        if request.status.is_some_and(|wanted| wanted != state) {
            return Ok(());
        }
        let shown = TaskOptions {
            id: &task.id,
            context_id: task.thread.key(),
            history_length: request.history_length,
            artifacts: request.include_artifacts,
        };
        self.tasks.push(run.to_json(shown, &waiting));
        Ok(())
    }
}

fn changed(row: &ThreadRow) -> Timestamp {
    row.thread.updated_at.unwrap_or(row.thread.created_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_where_a_page_ended() {
        let thread = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
        for item in [
            None,
            Some("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062"),
            Some("m.1"),
        ] {
            let token = Token {
                n_tasks: 7,
                change: 12,
                thread: thread.into(),
                before: Position(12),
                item: item.map(Into::into),
            };
            assert_eq!(Token::read(&token.write()), Some(token));
        }
        for wrong in ["", "1.2.3", "a.b.c.d.e", "1.2.3.4.task_x"] {
            assert_eq!(Token::read(wrong), None, "{wrong}");
        }
    }
}
