//! Which requests of a batch are accepted, and what they write.

use super::batch::Batch;
use super::columns::{End, InheritedCalls, NewBlock, NewThread, NewToken};
use super::connection::Conn;
use super::look::{FoundThread, Look};
use super::projection::{New, Placed, ThreadChange, numbered, project};
use super::restore;
use super::value::stored;
use super::write::{Answer, Body, Decision, NewLog, Write, size};
use crate::sum::{Sum, seed};
use crate::value::{int, nanos};
use store::waits::{CallsChange, waits_for_people};
use store::{
    Append, Appended, Created, Epoch, NewRecord, Ownership, Quotas, StorageUsage, StoreError,
    TenantId, Token,
};
use timeline::{Machine as _, Seq, ThreadId};

/// Decides about the requests of a batch, one after the other.
pub(super) struct Decider<'a> {
    pub(super) conn: &'a Conn,
    pub(super) quotas: &'a Quotas,
    pub(super) look: Look,
    pub(super) batch: Batch,
}

fn text(of: &str) -> String {
    stored(of).into_owned()
}

impl Decider<'_> {
    /// Decides about a request. An accepted one is in the batch; its first block has the sum that is returned.
    pub(super) async fn decide(
        &mut self,
        write: &Write,
    ) -> Result<(Decision, Option<Sum>), StoreError> {
        let decided = match &write.body {
            Body::Append(append) => self.append(write, append),
            Body::Create(new) => self.create(write, new).await,
        };
        match decided {
            Ok(decided) => Ok(decided),
            // The transaction has failed, not the request.
            Err(error @ StoreError::Failed(_)) => Err(error),
            Err(error) => Ok((Decision::Refused(error), None)),
        }
    }

    /// The epoch of the first block of a request, if that is in the log. Its last commit was sent, and not answered.
    fn landed(&self, write: &Write) -> Option<Epoch> {
        let place = (write.thread().clone(), write.tail().next());
        let (sum, epoch) = self.look.blocks.get(&place)?;
        (write.doubt.as_ref() == Some(sum)).then_some(*epoch)
    }

    fn append(
        &mut self,
        write: &Write,
        append: &Append,
    ) -> Result<(Decision, Option<Sum>), StoreError> {
        let thread = append.thread.clone();
        let landed = self.landed(write);
        let found = self.look.threads.get(&thread).ok_or(StoreError::NotFound)?;
        if let Some(epoch) = landed {
            let tail = write.end();
            let answer = Answer::Appended(Appended { tail, epoch });
            return Ok((Decision::Known(answer), None));
        }
        if found.is_changed {
            return Ok((Decision::Later, None));
        }
        if let Some(token) = &append.token {
            let key = (thread.clone(), token.token.clone());
            if let Some(answer) = self.look.tokens.get(&key) {
                let answer = answer.clone();
                return Err(StoreError::Repeated { answer });
            }
        }
        if found.epoch != append.epoch {
            return Err(StoreError::Fenced { thread });
        }
        if found.tail != append.tail {
            return Err(StoreError::Conflict {
                thread,
                expected: append.tail,
                found: found.tail,
            });
        }
        for (other, tail) in &append.unmoved {
            let found = self.look.threads.get(other);
            if found.is_some_and(|found| found.is_changed) {
                return Ok((Decision::Later, None));
            }
            if found.is_none_or(|found| found.tail != *tail) {
                let thread = other.clone();
                return Err(StoreError::Moved { thread });
            }
        }
        let bytes = size(&append.records);
        if append.is_limited {
            let usage = self.usage(&found.tenant);
            self.quotas.check_bytes(&found.tenant, usage, bytes)?;
        }
        self.write_append(write, append)
    }

    fn write_append(
        &mut self,
        write: &Write,
        append: &Append,
    ) -> Result<(Decision, Option<Sum>), StoreError> {
        let Some(found) = self.look.threads.get_mut(&append.thread) else {
            return Err(StoreError::NotFound);
        };
        found.is_changed = true;
        let epoch = match append.ownership {
            Ownership::Take(_) => Epoch(append.epoch.0.saturating_add(1).max(found.now)),
            Ownership::Keep | Ownership::Offer | Ownership::Rest => append.epoch,
        };
        let &mut FoundThread {
            no,
            owner,
            sum,
            may_wait,
            ..
        } = found;
        let tenant = found.tenant.clone();
        let (sum, first) = self.blocks(write, no, sum, epoch);
        let placed = Placed::after(no, &tenant, append.tail, &write.blocks);
        let events = numbered(append.tail, &append.records);
        let change = project(&mut self.batch, &placed, &events);
        let perhaps = change.calls == Some(CallsChange::Perhaps);
        if perhaps {
            self.batch.ended.push(no);
        }
        if may_wait && change.calls.is_some() {
            self.batch.no_calls.push(no);
        }
        let may_wait = perhaps || may_wait && change.calls.is_none();
        let owner = match append.ownership {
            Ownership::Take(node) => Some(int(node.0)),
            Ownership::Offer => Some(0),
            Ownership::Rest => None,
            Ownership::Keep if change.leaves_work => owner.or(Some(0)),
            Ownership::Keep => owner,
        };
        let tail = write.end();
        if let Some(found) = self.look.threads.get_mut(&append.thread) {
            (found.epoch, found.tail, found.sum) = (epoch, tail, sum);
            (found.owner, found.may_wait) = (owner, may_wait);
        }
        let bytes = size(&append.records);
        self.batch.ends.push(end(
            no,
            change,
            tail,
            bytes,
            owner,
            epoch,
            sum,
            &append.records,
        ));
        self.token(no, append.token.as_ref(), tail);
        self.use_more(
            &tenant,
            StorageUsage {
                bytes,
                ..StorageUsage::default()
            },
        );
        let answer = Answer::Appended(Appended { tail, epoch });
        Ok((Decision::Accepted(answer), first))
    }

    async fn create(
        &mut self,
        write: &Write,
        new: &NewLog,
    ) -> Result<(Decision, Option<Sum>), StoreError> {
        let NewLog { tenant, thread, .. } = new;
        let created = |thread: &ThreadId, epoch| {
            let thread = thread.clone();
            Answer::Created(Created { thread, epoch })
        };
        if self.landed(write).is_some() {
            let answer = created(&thread.id, Some(Epoch::FIRST));
            return Ok((Decision::Known(answer), None));
        }
        let key = thread.key.clone().map(|key| (tenant.clone(), key));
        if let Some(found) = key.as_ref().and_then(|key| self.look.keys.get(key)) {
            // That it exists is known once it is committed.
            let is_new = self.look.threads.get(found).is_some_and(|it| it.is_changed);
            let known = Decision::Known(created(found, None));
            return Ok((if is_new { Decision::Later } else { known }, None));
        }
        if self.look.ids.contains_key(&thread.id) {
            return Err(StoreError::Duplicate(thread.id.to_string()));
        }
        let parent = match &thread.fork {
            Some(fork) => {
                let found = self.look.ids.get(&fork.thread_id);
                let found = found.filter(|(_, owner)| owner == tenant);
                Some((found.ok_or(StoreError::NotFound)?.0, fork.seq))
            }
            None => None,
        };
        let bytes = size(&new.first);
        self.quotas
            .check_thread(tenant, self.usage(tenant), bytes)?;
        let no = self.look.numbers.pop();
        let no = no.ok_or_else(|| StoreError::Damaged("no number for a new thread".into()))?;
        let before = seed(tenant.as_str(), thread.id.as_str());
        let (sum, first) = self.blocks(write, no, before, Epoch::FIRST);
        let placed = Placed::after(no, tenant, Seq::ZERO, &write.blocks);
        let events = numbered(Seq::ZERO, &new.first);
        let change = project(&mut self.batch, &placed, &events);
        if change.calls == Some(CallsChange::Perhaps) {
            if change.has_run {
                self.batch.ended.push(no);
            } else if let Some((parent, seq)) = parent {
                self.inherit(no, tenant, parent, seq, &new.first).await?;
            }
        }
        let owner = match new.owner {
            Some(node) => Some(int(node.0)),
            None => change.leaves_work.then_some(0),
        };
        let last = new.first.last();
        self.batch.threads.push(NewThread {
            no,
            id: text(thread.id.as_str()),
            tenant: text(tenant.as_str()),
            key: thread.key.as_deref().map(text),
            status: change.status.unwrap_or(thread.status).name().to_owned(),
            title: change.title.and_then(|New(title)| title),
            metadata: change.metadata.and_then(|New(metadata)| metadata),
            fork_no: parent.map(|(no, _)| no),
            fork_seq: parent.map(|(_, seq)| int(seq.0)),
            created_at: nanos(thread.created_at),
            updated_at: nanos(last.map_or(thread.created_at, |record| record.at)),
            head_seq: int(write.end().0),
            bytes: int(bytes),
            epoch: int(Epoch::FIRST.0),
            owner,
            sum: sum.to_vec(),
        });
        self.token(no, new.token.as_ref(), write.end());
        self.use_more(
            tenant,
            StorageUsage {
                threads: 1,
                bytes,
                files: 0,
            },
        );
        self.note_new(no, new, key, (write.end(), sum, owner));
        let answer = created(&thread.id, Some(Epoch::FIRST));
        Ok((Decision::Accepted(answer), first))
    }

    /// Notes a new thread for the requests behind it.
    fn note_new(
        &mut self,
        no: i64,
        new: &NewLog,
        key: Option<(TenantId, String)>,
        (tail, sum, owner): (Seq, Sum, Option<i64>),
    ) {
        let id = &new.thread.id;
        self.look.ids.insert(id.clone(), (no, new.tenant.clone()));
        self.look.keys.extend(key.map(|key| (key, id.clone())));
        let changed = FoundThread {
            no,
            tenant: new.tenant.clone(),
            epoch: Epoch::FIRST,
            tail,
            sum,
            owner,
            now: 0,
            may_wait: true,
            is_changed: true,
        };
        self.look.threads.insert(id.clone(), changed);
    }

    /// Adds the calls that a fork inherits, if one waits for a person.
    async fn inherit(
        &mut self,
        no: i64,
        tenant: &TenantId,
        parent: i64,
        seq: Seq,
        first: &[NewRecord],
    ) -> Result<(), StoreError> {
        let open = restore::inherited_calls(self.conn, parent, seq).await?;
        if let Some(record) = first.first().filter(|_| waits_for_people(open.as_ref())) {
            self.batch.inherited.push(InheritedCalls {
                thread_no: no,
                tenant: text(tenant.as_str()),
                at: nanos(record.at),
            });
        }
        Ok(())
    }

    /// Adds the blocks of a request. Returns the sums of the last and the first one.
    fn blocks(&mut self, write: &Write, no: i64, before: Sum, epoch: Epoch) -> (Sum, Option<Sum>) {
        let chained = write.chained(before, epoch);
        let last = chained.last().map_or(before, |(_, sum)| *sum);
        let first = chained.first().map(|(_, sum)| *sum);
        let rows = chained.into_iter().zip(&write.blocks);
        self.batch
            .blocks
            .extend(rows.map(|((summed, sum), block)| NewBlock {
                thread_no: no,
                first: summed.first,
                n: summed.n,
                epoch: summed.epoch,
                facts: summed.facts,
                sum: sum.to_vec(),
                body: block.body.clone(),
            }));
        (last, first)
    }

    fn token(&mut self, no: i64, token: Option<&Token>, end: Seq) {
        self.batch.tokens.extend(token.map(|token| NewToken {
            thread_no: no,
            token: text(&token.token),
            answer: text(&token.answer),
            seq: int(end.0),
        }));
    }

    /// The usage of a tenant, with the requests of the batch.
    fn usage(&self, tenant: &TenantId) -> StorageUsage {
        let stored = self.look.usage.get(tenant).copied().unwrap_or_default();
        let more = self.batch.usage.get(&text(tenant.as_str()));
        let more = more.copied().unwrap_or_default();
        StorageUsage {
            threads: stored.threads.saturating_add(more.threads),
            bytes: stored.bytes.saturating_add(more.bytes),
            files: stored.files,
        }
    }

    fn use_more(&mut self, tenant: &TenantId, more: StorageUsage) {
        let usage = self.batch.usage.entry(text(tenant.as_str())).or_default();
        usage.threads = usage.threads.saturating_add(more.threads);
        usage.bytes = usage.bytes.saturating_add(more.bytes);
    }
}

#[expect(clippy::too_many_arguments, reason = "they are the columns of a row")]
fn end(
    no: i64,
    change: ThreadChange,
    tail: Seq,
    bytes: u64,
    owner: Option<i64>,
    epoch: Epoch,
    sum: Sum,
    records: &[NewRecord],
) -> End {
    End {
        no,
        status: change.status.map(|status| status.name().to_owned()),
        sets_title: change.title.is_some(),
        title: change.title.and_then(|New(title)| title),
        sets_metadata: change.metadata.is_some(),
        metadata: change.metadata.and_then(|New(metadata)| metadata),
        updated_at: records.last().map(|record| nanos(record.at)),
        head_seq: int(tail.0),
        bytes: int(bytes),
        epoch: int(epoch.0),
        owner,
        sum: sum.to_vec(),
    }
}
