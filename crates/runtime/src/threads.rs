//! Threads by key: create, find, follow, fork, import and delete.

use crate::children::{StoppedChildren, waiting_parent};
use crate::error::RuntimeError;
use crate::follow::{Follow, Until, follow};
use crate::live::{Live, LockedThread, check_size};
use crate::request::{Import, NewThreadRequest};
use crate::runtime::Runtime;
use jiff::Timestamp;
use std::sync::Arc;
use store::search::{FoundThreads, Search, ThreadPreview};
use store::{
    Filter, Logged, NewRecord, StoreError, TenantId, ThreadRow, ThreadRows, WaitingRow, WaitingRows,
};
use timeline::{
    Command, Interruption, ItemType, NewItem, NewThread, ReadPosition, Rejected, Seq, State,
    ThreadId, Transcript,
};

impl Runtime {
    /// Creates a thread, or finds the one with that key.
    pub async fn get_or_create(
        &self,
        tenant: &TenantId,
        new: NewThreadRequest,
    ) -> Result<(ThreadRow, bool), RuntimeError> {
        if let Some(key) = &new.key {
            match self.inner.store.find(tenant, key).await {
                Ok(row) => return Ok((row, false)),
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let first = self.first(new, None)?;
        let created = self.make(tenant, first).await?;
        Ok((
            self.inner.store.row(&created.thread).await?,
            created.is_new(),
        ))
    }

    pub(crate) fn first(
        &self,
        new: NewThreadRequest,
        at: Option<Timestamp>,
    ) -> Result<Vec<NewRecord>, RuntimeError> {
        let id = self.inner.ids.mint();
        let key = new.key.unwrap_or_else(|| id.clone());
        let thread = NewThread {
            id: id.into(),
            key: Some(key),
            title: new.title,
            metadata: new.metadata,
            fork: new.fork,
        };
        let at = at.unwrap_or_else(|| self.inner.clock.now());
        let create = Command::Create {
            thread,
            context_id: self.inner.ids.mint().into(),
        };
        let events = State::default().decide(create, at)?;
        events
            .into_iter()
            .map(|event| Ok(NewRecord::new(at, event)?))
            .collect()
    }

    /// Finds a thread by its key.
    pub async fn find(&self, tenant: &TenantId, key: &str) -> Result<ThreadRow, RuntimeError> {
        Ok(self.inner.store.find(tenant, key).await?)
    }

    /// Finds a thread by its id.
    pub async fn find_by_id(
        &self,
        tenant: &TenantId,
        id: &ThreadId,
    ) -> Result<ThreadRow, RuntimeError> {
        let row = self.inner.store.row(id).await?;
        if row.tenant == *tenant {
            Ok(row)
        } else {
            Err(StoreError::NotFound.into())
        }
    }

    /// Lists the tenant's threads, the last changed first.
    pub async fn list(
        &self,
        tenant: &TenantId,
        page: ThreadRows,
    ) -> Result<Vec<ThreadRow>, RuntimeError> {
        Ok(self.inner.store.list(tenant, page).await?)
    }

    /// Finds the tenant's threads by words of their texts and titles.
    pub async fn search(
        &self,
        tenant: &TenantId,
        search: Search,
    ) -> Result<FoundThreads, RuntimeError> {
        Ok(self.inner.store.search(tenant, search).await?)
    }

    /// Lists the tenant's threads in which something waits for a person, the one with the oldest event
    /// first.
    pub async fn waiting(
        &self,
        tenant: &TenantId,
        page: WaitingRows,
    ) -> Result<Vec<WaitingRow>, RuntimeError> {
        Ok(self.inner.store.waiting(tenant, page).await?)
    }

    /// The previews of these rows, in their order.
    pub async fn previews(&self, rows: &[ThreadRow]) -> Result<Vec<ThreadPreview>, RuntimeError> {
        let ids = rows.iter().map(|row| row.thread.id.clone()).collect();
        Ok(self.inner.store.previews(ids).await?)
    }

    /// Closes a thread for good (ruling 9). Its waiting calls are closed, and their sub-agents are
    /// stopped.
    pub async fn close(&self, tenant: &TenantId, key: &str) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let runtime = self.clone();
        self.run_to_completion(async move {
            live.decided(async || {
                let mut held = live.hold().await?;
                let close = vec![(None, Command::Close)];
                let why = unwanted("the thread was closed");
                let withdrawn = runtime
                    .withdraw_and(&live, &mut held, why, close.clone())
                    .await?;
                if withdrawn.is_none() {
                    held.commit(close, None).await?;
                    held.core()?.generation += 1;
                }
                Ok(held.core()?.tail)
            })
            .await
        })
        .await
    }

    /// Opens a failed thread again.
    pub async fn reopen(&self, tenant: &TenantId, key: &str) -> Result<Seq, RuntimeError> {
        self.ask(tenant, key, Command::Reopen).await
    }

    /// Stores an item that no execution answers. A message closes the calls that wait for answers.
    pub async fn record(
        &self,
        tenant: &TenantId,
        key: &str,
        item: NewItem,
    ) -> Result<Seq, RuntimeError> {
        let record = Command::Record { item };
        let live = match self.existing(tenant, key).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => {
                let new = NewThreadRequest {
                    key: Some(key.to_owned()),
                    ..NewThreadRequest::default()
                };
                self.live_of(self.get_or_create(tenant, new).await?.0)
            }
            found => found?,
        };
        self.written(live, record).await
    }

    /// Stores items in order in an existing thread, all or none. No execution answers them.
    pub async fn record_all(
        &self,
        tenant: &TenantId,
        key: &str,
        items: Vec<NewItem>,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let commands = items.into_iter();
        let commands = commands.map(|item| (None, Command::Record { item }));
        self.append_at(live, None, commands.collect()).await
    }

    async fn ask(
        &self,
        tenant: &TenantId,
        key: &str,
        command: Command,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        self.written(live, command).await
    }

    async fn written(&self, live: Arc<Live>, command: Command) -> Result<Seq, RuntimeError> {
        self.append_at(live, None, vec![(None, command)]).await
    }

    /// Appends the records of the commands in one transaction. If `tail` is set, it appends only if
    /// the log still ends there. Sub-agents whose pending answers are now impossible are stopped.
    /// If the commands write to such a sub-agent's own thread, its run ends with them.
    pub(crate) async fn append_at(
        &self,
        live: Arc<Live>,
        tail: Option<Seq>,
        commands: Vec<(Option<Timestamp>, Command)>,
    ) -> Result<Seq, RuntimeError> {
        let runtime = self.clone();
        self.run_to_completion(async move {
            live.decided(async || {
                let held = live.hold().await?;
                runtime
                    .append_held(&live, held, tail, commands.clone())
                    .await
            })
            .await
        })
        .await
    }

    /// Appends the events of commands for a caller that holds the thread's lock.
    pub(crate) async fn append_held(
        &self,
        live: &Arc<Live>,
        mut held: LockedThread<'_>,
        tail: Option<Seq>,
        commands: Vec<(Option<Timestamp>, Command)>,
    ) -> Result<Seq, RuntimeError> {
        let found = held.core()?.tail;
        expect_tail(live, tail, found)?;
        let state = &held.core()?.state;
        let takes_over = commands.iter().any(|(_, command)| supersedes(command));
        if let Some(open) = state.open().filter(|_| takes_over)
            && waiting_parent(state).is_some()
        {
            if tail.is_some() {
                return Err(RuntimeError::Busy(open.execution.id.clone()));
            }
            let why = unwanted("something else was said in place of the answers");
            if self
                .withdraw_and(live, &mut held, why, commands.clone())
                .await?
                .is_some()
            {
                return Ok(held.core()?.tail);
            }
        }
        let waited = StoppedChildren::waited(&held.core()?.state);
        let seq = held.commit(commands, None).await?;
        let core = held.core()?;
        core.generation += 1;
        let unwanted = waited.and_then(|waited| waited.without(&core.state));
        self.stop_children(unwanted);
        self.ensure_worker(live, &mut held)?;
        Ok(seq)
    }

    /// Writes an imported conversation into a new thread, in one transaction.
    pub async fn import(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        import: Import,
    ) -> Result<ThreadRow, RuntimeError> {
        let new = NewThreadRequest {
            key,
            title: import.title,
            metadata: import.metadata,
            fork: import.fork,
        };
        if let Some(key) = &new.key
            && self.inner.store.find(tenant, key).await.is_ok()
        {
            return Err(RuntimeError::NotEmpty);
        }
        let mut state = State::default();
        let mut records = self.first(new, import.created_at)?;
        for record in &records {
            state.apply(record.event());
        }
        for (at, command) in import.commands {
            for event in state.decide(command, at)? {
                state.apply(&event);
                let record = NewRecord::new(at, event)?;
                check_size(&record, self.inner.options.message_bytes)?;
                records.push(record);
            }
        }
        if let Some(active) = state.active() {
            return Err(Rejected::Busy(active.execution.id.clone()).into());
        }
        let created = self.make(tenant, records).await?;
        if !created.is_new() {
            return Err(RuntimeError::NotEmpty);
        }
        Ok(self.inner.store.row(&created.thread).await?)
    }

    /// Appends a conversation whose runs are over to a thread, in one transaction. No agent starts. Like
    /// a new message, it withdraws pending calls. With `tail`, only if that is the thread's last event.
    /// Times before the last event, or in the future, are moved to these limits.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the thread has later events than `tail`.
    pub async fn append_past(
        &self,
        tenant: &TenantId,
        key: &str,
        commands: Vec<(Timestamp, Command)>,
        tail: Option<Seq>,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let runtime = self.clone();
        self.run_to_completion(async move {
            live.decided(async || {
                let mut held = live.hold().await?;
                let (found, now) = held.next_position()?;
                expect_tail(&live, tail, found)?;
                let last = held.core()?.last_at.min(now);
                let commands = commands.clone().into_iter();
                let commands = commands.map(|(at, command)| (Some(at.clamp(last, now)), command));
                runtime
                    .append_held(&live, held, None, commands.collect())
                    .await
            })
            .await
        })
        .await
    }

    /// Follows a thread: every record after `after`, once and in order, then new records.
    /// Chunks of a running step are followed before they are stored.
    pub async fn follow(
        &self,
        tenant: &TenantId,
        key: &str,
        after: impl Into<ReadPosition> + Send,
        until: Until,
    ) -> Result<Follow, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        self.follow_live(live, after.into(), until).await
    }

    /// Follows a thread from the end of its log that the store has now.
    ///
    /// # Errors
    ///
    /// [`StoreError::AheadOfLog`] if the log ends before `after`.
    pub(crate) async fn follow_live(
        &self,
        live: Arc<Live>,
        after: ReadPosition,
        until: Until,
    ) -> Result<Follow, RuntimeError> {
        if self.inner.store.is_shared() {
            // Nobody may have followed it here until now.
            let known = live.end();
            let tail = self.inner.store.row(&live.thread).await?.tail;
            live.catch_up(known, tail).await?;
            self.announce_follower(&live);
        }
        if after.seq > live.end() {
            // A commit can be read a moment before this process has its answer.
            let row = self.inner.store.row(&live.thread).await?;
            row.check_position(after.seq)?;
        }
        Ok(follow(live, after, until))
    }

    /// Reads at most `limit` records after `after`.
    pub async fn read(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Logged>, RuntimeError> {
        let (row, unstored) = self.row_to_read(tenant, key, Filter::All).await?;
        let store = &self.inner.store;
        let read = || store.read(&row.thread.id, after, limit, Filter::All);
        let page = read().await?;
        let end = page.last().map_or(after, |last| last.record.seq);
        let is_end = page.len() < limit && end >= row.tail;
        let Some(live) = unstored.filter(|_| is_end) else {
            return Ok(page);
        };
        self.store_for_reader(live).await?;
        Ok(read().await?)
    }

    /// The whole conversation; its size is that of the thread. If the filter includes chunks, it
    /// also has the partial output of interrupted steps.
    pub async fn transcript(
        &self,
        tenant: &TenantId,
        key: &str,
        filter: Filter,
    ) -> Result<Transcript, RuntimeError> {
        let (mut row, unstored) = self.row_to_read(tenant, key, filter).await?;
        if let Some(live) = unstored {
            row = self.store_for_reader(live).await?;
        }
        let store = self.inner.store.as_ref();
        let read = crate::live::read_transcript(store, &row.thread.id, filter).await?;
        Ok(read.without_removed())
    }

    /// The state of a thread.
    pub async fn state(&self, tenant: &TenantId, key: &str) -> Result<(State, Seq), RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let head = self.inner.store.head(&row.thread.id).await?;
        Ok((head.state, head.tail))
    }
}

/// Whether a command closes the calls for whose answers a thread waits.
fn supersedes(command: &Command) -> bool {
    match command {
        Command::Record { item } => item.item_type == ItemType::Message,
        Command::Start { .. } => true,
        Command::Create { .. }
        | Command::Enqueue { .. }
        | Command::Update { .. }
        | Command::Remove { .. }
        | Command::Compact { .. }
        | Command::Emit { .. }
        | Command::StartTool { .. }
        | Command::Respond { .. }
        | Command::PutPart { .. }
        | Command::AddPart { .. }
        | Command::Note { .. }
        | Command::ResetStep
        | Command::Resume
        | Command::Park
        | Command::CompleteStep { .. }
        | Command::ImportStep { .. }
        | Command::End { .. }
        | Command::Close
        | Command::Reopen => false,
    }
}

/// Refuses a log whose last event is not the expected one.
fn expect_tail(live: &Live, expected: Option<Seq>, found: Seq) -> Result<(), StoreError> {
    match expected {
        Some(expected) if expected != found => Err(StoreError::Conflict {
            thread: live.thread.clone(),
            expected,
            found,
        }),
        Some(_) | None => Ok(()),
    }
}

fn unwanted(detail: &str) -> Interruption {
    Interruption {
        reason: Interruption::USER_CANCELLED.into(),
        detail: Some(detail.to_owned()),
    }
}
