//! Erasing, and the proof of it.

use super::content::{remove, secret};
use super::{Content, Operated, acme};
use loomline_stores::{ErasedEntries, ErasedTenant, Searched};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::search::{Search, SearchWords};
use store::suite::script::keep;
use store::suite::{Author, script};
use store::{Filter, ThreadRows};
use timeline::{
    Command, Compaction, ERASED, Event, NewItem, Payload, Record, Removed, Replaced, Seq,
    SummaryAuthor, ThreadId, Transcript,
};

impl Content {
    async fn records(&self, thread: &ThreadId) -> Vec<Record> {
        let page = self
            .store
            .read(thread, Seq::ZERO, 10_000, Filter::All)
            .await;
        page.unwrap()
            .into_iter()
            .map(|logged| logged.record)
            .collect()
    }

    /// The transcript without removed entries.
    async fn shown(&self, thread: &ThreadId) -> Transcript {
        let mut transcript = Transcript::default();
        for record in self.records(thread).await {
            transcript.apply(&record);
        }
        transcript.without_removed()
    }

    async fn erase(&self, thread: &ThreadId) -> ErasedEntries {
        let expected = self.durable.erasable(thread).await.unwrap();
        let erased = self.durable.erase_removed(thread).await.unwrap();
        assert_eq!(erased, expected);
        erased
    }

    async fn search(&self, samples: loomline_stores::Samples) -> Searched {
        self.durable.search_for(Arc::new(samples)).await.unwrap()
    }

    /// The number of threads with a word.
    async fn n_found(&self, word: &str) -> usize {
        let search = Search {
            words: SearchWords::parse(word).unwrap(),
            limit: 100,
            ..Search::default()
        };
        let found = self.store.search(&acme(), search).await;
        found.unwrap().threads.len()
    }
}

/// After an erasure the chain, the transcript and the tables are as before, and nothing has the content.
pub(crate) async fn an_erased_block_keeps_its_digest_and_the_chain_holds(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    author.commit(keep("shown")).await;
    remove(&mut author).await;
    content.secrets("u", 3).await;
    let thread = author.thread.clone();
    let before = content.durable.chain(&thread).await.unwrap();
    let row = content.store.row(&thread).await.unwrap();
    let (logged, transcript) = (content.records(&thread).await, content.shown(&thread).await);
    let samples = content.durable.samples_of_removed(&thread).await.unwrap();
    assert!(samples.texts() >= 6, "{samples:?}");
    assert_eq!(
        content.durable.with_removed(&acme()).await.unwrap(),
        std::slice::from_ref(&thread)
    );

    let erased = content.erase(&thread).await;

    assert_eq!((erased.entries, erased.shown_by_forks), (2, 0));
    assert!(erased.blocks >= 3, "{erased:?}");
    let after = content.durable.chain(&thread).await.unwrap();
    assert!(after.holds);
    assert_eq!(after.end, before.end);
    for (after, before) in after.blocks.iter().zip(&before.blocks) {
        let of = |it: &loomline_stores::ChainBlock| (it.first, it.n_events, it.digest, it.sum);
        assert_eq!(of(after), of(before));
    }
    let n_erased = after.blocks.iter().filter(|it| it.erased.is_some()).count();
    assert_eq!(n_erased as u64, erased.blocks);
    let now = content.records(&thread).await;
    let about = |records: &[Record]| -> Vec<_> {
        let about = |it: &Record| (it.seq, it.at, it.event.event_type());
        records.iter().map(about).collect()
    };
    assert_eq!(about(&now), about(&logged));
    assert_eq!(content.shown(&thread).await, transcript);
    let is_erased = |record: &Record| {
        matches!(&record.event, Event::ItemCreated { item }
            if item.content.as_ref().is_some_and(|it| it.text().contains(ERASED)))
    };
    assert!(now.iter().any(is_erased));
    let fewer = row.bytes - content.store.row(&thread).await.unwrap().bytes;
    assert!(fewer > 500, "{fewer}");
    content.assert_sound().await;

    content.durable.reclaim().await.unwrap();
    let searched = content.search(samples).await;
    assert_eq!(searched.left, 0, "{searched:?}");
    assert_eq!(content.n_found(&secret("t", "text")).await, 0);
    assert_eq!(content.n_found(&secret("u", "text")).await, 1);
    assert_eq!(content.n_found("héllo").await, 1);
    let usage = content.store.usage().await.unwrap();
    content.durable.rebuild_tables().await.unwrap();
    content.assert_sound().await;
    assert_eq!(content.store.usage().await.unwrap(), usage);
    let again = content.erase(&thread).await;
    assert_eq!((again.entries, again.blocks), (0, 0));
}

/// A thread goes on after an erasure.
pub(crate) async fn a_thread_is_written_after_its_removed_messages_were_erased(
    subject: impl Operated,
) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    remove(&mut author).await;
    content.erase(&author.thread).await;
    author.commit_all(script()).await;
    assert!(content.durable.chain(&author.thread).await.unwrap().holds);
    content.assert_sound().await;
}

/// The digest of an erased block's new body is checked.
pub(crate) async fn a_change_of_an_erased_block_is_found(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    remove(&mut author).await;
    content.erase(&author.thread).await;
    let sql = "UPDATE thread_blocks SET erased = (SELECT b.erased FROM thread_blocks b WHERE b.erased IS NOT NULL ORDER BY b.first DESC LIMIT 1) WHERE erased IS NOT NULL";
    assert!(subject.execute(sql).await > 1);
    assert!(!content.durable.chain(&author.thread).await.unwrap().holds);
    assert!(!content.findings().await.is_empty());
    let read = content
        .store
        .read(&author.thread, Seq::ZERO, 1000, Filter::All);
    assert!(read.await.is_err());
}

/// An entry that a fork shows stays until the fork is deleted.
pub(crate) async fn an_entry_that_a_fork_shows_is_not_erased(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    let fork = content.fork("fork", &author).await;
    remove(&mut author).await;
    let erased = content.erase(&author.thread).await;
    assert_eq!(
        (erased.entries, erased.blocks, erased.shown_by_forks),
        (0, 0, 2)
    );
    content
        .store
        .delete(&acme(), &fork.thread, None)
        .await
        .unwrap();
    let erased = content.erase(&author.thread).await;
    assert_eq!((erased.entries, erased.shown_by_forks), (2, 0));
    content.assert_sound().await;
}

/// An entry of the parent stays though a fork removed it.
pub(crate) async fn an_entry_that_a_fork_removed_stays_in_its_parent(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let author = content.secrets("t", 3).await;
    let mut fork = content.fork("fork", &author).await;
    let what = Removed::Item("t-item".into());
    fork.commit(Command::Remove { what }).await;
    assert_eq!(
        content.durable.with_removed(&acme()).await.unwrap(),
        [fork.thread.clone()]
    );
    let erased = content.erase(&fork.thread).await;
    assert_eq!(
        (erased.entries, erased.blocks, erased.in_parents),
        (0, 0, 1)
    );
    assert_eq!(content.n_found(&secret("t", "message")).await, 1);
    content.assert_sound().await;
}

/// The summary and the states of a withdrawn compaction are erased, those of another one stay.
pub(crate) async fn the_summary_of_a_withdrawn_compaction_is_erased(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    for id in ["one", "two"] {
        let state: Payload = json!({"note": secret("t", &format!("{id}state"))}).into();
        let compaction = Compaction {
            id: id.into(),
            execution_id: "t-execution".into(),
            through: author.tail,
            summary: secret("t", &format!("{id}summary")),
            author: SummaryAuthor::default(),
            replaced: Replaced::default(),
            agent_states: BTreeMap::from([("demo".to_owned(), state)]),
        };
        author.commit(Command::Compact { compaction }).await;
    }
    assert_eq!(content.durable.with_removed(&acme()).await.unwrap(), []);
    let what = Removed::Compaction("two".into());
    author.commit(Command::Remove { what }).await;
    let thread = author.thread.clone();
    let made = content
        .store
        .compactions(&thread, Seq(u64::MAX), 9)
        .await
        .unwrap();
    let samples = content.durable.samples_of_removed(&thread).await.unwrap();
    assert!(samples.texts() >= 2);

    let erased = content.erase(&thread).await;

    assert_eq!((erased.entries, erased.blocks), (1, 1));
    content.durable.reclaim().await.unwrap();
    assert_eq!(content.search(samples).await.left, 0);
    let found = content
        .store
        .compactions(&thread, Seq(u64::MAX), 9)
        .await
        .unwrap();
    assert_eq!(found, made);
    let log = format!("{:?}", content.records(&thread).await);
    for kind in ["summary", "state"] {
        assert!(!log.contains(&secret("t", &format!("two{kind}"))));
        assert!(log.contains(&secret("t", &format!("one{kind}"))));
    }
    content.assert_sound().await;
}

/// A tenant's objects, contents and checkpoints go, and those of others stay.
pub(crate) async fn a_tenants_objects_and_checkpoints_are_erased_with_its_threads(
    subject: impl Operated,
) {
    let content = Content::of(subject.durable());
    let author = content.secrets("t", 3).await;
    for tenant in ["acme", "globex"] {
        for n in 0..70 {
            let file = secret(tenant, "file").repeat(50);
            content
                .file(tenant, &format!("f{n}"), format!("{n} {file}").as_bytes())
                .await;
            let state = json!({"note": secret(tenant, "checkpoint")}).to_string();
            content.checkpoint(tenant, &format!("s{n}"), state).await;
        }
    }
    let samples = content.durable.samples_of_tenant(&acme()).await.unwrap();
    assert!(samples.texts() > 140, "{samples:?}");
    content
        .store
        .delete(&acme(), &author.thread, None)
        .await
        .unwrap();
    let erased = content.durable.erase_tenant(&acme()).await.unwrap();
    let expected = ErasedTenant {
        objects: 70,
        checkpoints: 70,
    };
    assert_eq!(erased, expected);
    content.durable.reclaim().await.unwrap();
    let searched = content.search(samples).await;
    assert_eq!(searched.left, 0, "{searched:?}");
    let usage = content.store.usage().await.unwrap();
    let tenants: Vec<_> = usage.iter().map(|(tenant, _)| tenant.as_str()).collect();
    assert_eq!(tenants, ["globex"]);
    assert_eq!(usage[0].1.files, 70);
    content.assert_sound().await;
}

/// The search names content that stays and has the same texts.
pub(crate) async fn content_that_stays_is_reported_as_shared(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    // The full-text index has the names in small letters only, the threads in their spelling only.
    let text = format!("HttpServletRequestWrapper {}", secret("t", "message"));
    let text = json!([{"type": "input_text", "text": text}]);
    let mut other = content.thread("quotes").await;
    for author in [&mut author, &mut other] {
        let item = NewItem::user("name", text.clone().into());
        author.commit(Command::Record { item }).await;
    }
    remove(&mut author).await;
    let what = Removed::Item("name".into());
    author.commit(Command::Remove { what }).await;
    let samples = content
        .durable
        .samples_of_removed(&author.thread)
        .await
        .unwrap();
    content.erase(&author.thread).await;
    content.durable.reclaim().await.unwrap();
    let searched = content.search(samples).await;
    assert!(searched.left == 0 && searched.shared > 0, "{searched:?}");
    let quoted = "thread_blocks.body of thread quotes".to_owned();
    assert!(searched.shared_in.contains(&quoted), "{searched:?}");
}

/// Everything that a thread has is sampled, and found while it is there.
pub(crate) async fn samples_of_a_thread_are_found_until_it_is_deleted(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let author = content.secrets("t", 3).await;
    let samples = content
        .durable
        .samples_of_thread(&author.thread)
        .await
        .unwrap();
    let found = content.search(samples.clone()).await;
    for place in [
        "thread_blocks.body of thread t",
        "thread_tokens.token of thread t",
        "tenant_objects.json of thread t",
        "tenant_contents.content",
    ] {
        assert!(
            found.shared_in.contains(&place.to_owned()),
            "{place}: {found:?}"
        );
    }
    content
        .store
        .delete(&acme(), &author.thread, None)
        .await
        .unwrap();
    content.durable.reclaim().await.unwrap();
    let searched = content.search(samples).await;
    assert_eq!((searched.left, searched.shared), (0, 0), "{searched:?}");
}

/// A store knows that it has deleted something, until the space is returned.
pub(crate) async fn a_store_knows_that_it_has_deleted_content(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.secrets("t", 3).await;
    remove(&mut author).await;
    let store = content.durable.clone();
    store.reclaim().await.unwrap();
    assert!(!store.has_deleted());
    content.erase(&author.thread).await;
    assert!(store.has_deleted());
    store.reclaim().await.unwrap();
    assert!(!store.has_deleted());
    content.erase(&author.thread).await;
    assert!(!store.has_deleted(), "nothing was left to erase");
    content.file("acme", "f", b"first").await;
    assert!(!store.has_deleted());
    content.file("acme", "f", b"second").await;
    assert!(store.has_deleted());
    store.reclaim_at_once().await.unwrap();
    content
        .store
        .delete(&acme(), &author.thread, None)
        .await
        .unwrap();
    assert!(store.has_deleted());
    store.compact().await.unwrap();
    assert!(!store.has_deleted() && store.returns_space().await.unwrap());
    assert!(store.copies().is_empty());
    content.assert_sound().await;
}

/// Threads are listed from the one that changed first.
pub(crate) async fn threads_are_listed_in_the_order_of_their_changes(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut authors: Vec<Author> = Vec::new();
    for name in ["a", "b", "c"] {
        authors.push(content.thread(name).await);
    }
    authors[0].commit(keep("i")).await;
    let page = ThreadRows {
        limit: 10,
        ..ThreadRows::default()
    };
    let mut expected = content.store.list(&acme(), page).await.unwrap();
    expected.reverse();
    let all = content
        .durable
        .oldest_threads(&acme(), 0, 10)
        .await
        .unwrap();
    assert_eq!(all, expected);
    let after = all[0].change;
    let rest = content
        .durable
        .oldest_threads(&acme(), after, 1)
        .await
        .unwrap();
    assert_eq!(rest, expected[1..2]);
}
