//! Finding texts in memory: a search scans the logs of the tenant.

use super::stored::{Log, StoredThread};
use crate::search::{
    FoundThread, FoundThreads, HITS_PER_THREAD, PREVIEW_CHARS, Search, SearchHit, ThreadPreview,
    text_of_content, text_of_part,
};
use crate::{KeyPattern, Run, TenantId, ThreadFilter, ThreadRow};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use timeline::{Event, ItemId, ItemType, Removed, Role, Seq, StepId, ThreadId, chunk_type};

/// The numbers of titles begin here, so that titles are found first.
const TITLES: u64 = 1 << 62;

/// A text that can be found.
struct Text {
    /// Its number among all texts of the store, in the order of the writes.
    number: u64,
    seq: Option<Seq>,
    role: Option<Role>,
    content: String,
}

/// The texts of a thread.
#[derive(Default)]
struct Texts<'a> {
    items: BTreeMap<&'a ItemId, Text>,
    parts: BTreeMap<(&'a StepId, u32), Text>,
}

impl<'a> Texts<'a> {
    fn apply(&mut self, number: u64, seq: Seq, event: &'a Event) {
        let text = |role, content| Text {
            number,
            seq: Some(seq),
            role,
            content,
        };
        if let Event::ItemCreated { item } = event {
            let content = item.content.as_ref();
            let content = content.filter(|_| item.item_type == ItemType::Message);
            let found = content.and_then(|it| text_of_content(it.text()));
            self.items
                .extend(found.map(|it| (&item.id, text(item.role, it))));
        } else if let Event::PartCreated {
            step_id, idx, part, ..
        }
        | Event::PartUpdated {
            step_id, idx, part, ..
        } = event
        {
            self.parts.remove(&(step_id, *idx));
            let found = text_of_part(part.text());
            let found = found.map(|it| ((step_id, *idx), text(Some(Role::Assistant), it)));
            self.parts.extend(found);
        } else if let Event::ChunkEmitted {
            chunk_type,
            step_id,
            data,
            ..
        } = event
        {
            match (chunk_type.as_str(), step_id, data) {
                (chunk_type::STEP_RESET, Some(step), _) => {
                    self.remove(&Removed::Step(step.clone()));
                }
                (chunk_type::ITEM_REMOVED, _, Some(data)) => {
                    if let Ok(what) = data.read() {
                        self.remove(&what);
                    }
                }
                _ => {}
            }
        }
    }

    fn remove(&mut self, what: &Removed) {
        match what {
            Removed::Item(id) => {
                self.items.remove(id);
            }
            Removed::Step(id) => self.parts.retain(|(step, _), _| *step != id),
            Removed::Compaction(_) => {}
        }
    }
}

impl Log {
    /// The texts that can be found, newest first, without the title.
    fn texts(&self) -> Vec<Text> {
        let mut texts = Texts::default();
        for (logged, number) in self.records.iter().zip(&self.numbers) {
            texts.apply(*number, logged.record.seq, &logged.record.event);
        }
        let items = texts.items.into_values();
        let mut texts: Vec<_> = items.chain(texts.parts.into_values()).collect();
        texts.sort_by_key(|text| Reverse(text.number));
        texts
    }

    fn title(&self) -> Option<Text> {
        let title = self.state.thread()?.title.clone()?;
        Some(Text {
            number: TITLES + self.numbers.first()?,
            seq: None,
            role: None,
            content: title,
        })
    }

    /// Whether a list with this filter has the thread.
    pub(super) fn passes(&self, filter: &ThreadFilter, row: &ThreadRow) -> bool {
        let agent = filter.agent.as_ref().and_then(|_| self.agent());
        filter.accepts(&row.thread, agent.as_deref(), self.may_wait())
    }

    /// The agent of the last run.
    fn agent(&self) -> Option<String> {
        let last = self.records.iter().rev().find_map(|logged| {
            let Event::ExecutionCreated { execution } = &logged.record.event else {
                return None;
            };
            Some(execution)
        });
        Run::of(last?.run.as_ref()).agent
    }

    /// The hits of a search in this thread, and the number of the first one.
    fn found(&self, search: &Search) -> Option<(u64, FoundThread)> {
        let thread = self.state.thread()?;
        let key = thread.key.as_deref();
        let covers = |pattern: &KeyPattern| key.is_some_and(|key| pattern.covers(key));
        let keys = search.keys.as_ref();
        let row = self.row(thread);
        let is_meant =
            keys.is_none_or(|keys| keys.iter().any(covers)) && self.passes(&search.filter, &row);
        if !is_meant {
            return None;
        }
        let texts = self.title().into_iter().chain(self.texts());
        let mut hits = texts
            .filter(|it| search.words.are_in(&it.content))
            .peekable();
        let number = hits.peek()?.number;
        let hits = hits.take(HITS_PER_THREAD).map(|it| SearchHit {
            seq: it.seq,
            role: it.role,
            excerpt: search.words.excerpt(&it.content),
        });
        let hits = hits.collect();
        Some((number, FoundThread { row, hits }))
    }
}

impl StoredThread {
    pub(super) fn search(&self, tenant: &TenantId, search: &Search) -> FoundThreads {
        let logs = self.threads.values().filter(|log| log.tenant == *tenant);
        let mut found: Vec<_> = logs.filter_map(|log| log.found(search)).collect();
        found.retain(|(number, _)| search.after.is_none_or(|after| *number < after));
        found.sort_by_key(|(number, _)| Reverse(*number));
        let is_more = found.len() > search.limit;
        found.truncate(search.limit);
        FoundThreads {
            next: found.last().map(|(number, _)| *number).filter(|_| is_more),
            threads: found.into_iter().map(|(_, found)| found).collect(),
        }
    }

    pub(super) fn preview(&self, thread: &ThreadId) -> ThreadPreview {
        let Some(log) = self.threads.get(thread) else {
            return ThreadPreview::default();
        };
        let fork = log.state.thread().and_then(|made| made.fork.as_ref());
        let parent = fork.and_then(|fork| self.threads.get(&fork.thread_id));
        let text = log.texts().into_iter().next();
        ThreadPreview {
            agent: log.agent(),
            forked_from: parent.and_then(|log| log.state.thread()?.key.clone()),
            last_text: text.map(|it| it.content.chars().take(PREVIEW_CHARS).collect()),
            may_wait: log.may_wait(),
        }
    }
}
