//! The chains of logs.

use super::{Content, Operated};
use loomline_stores::{ChainEnd, Compared};
use store::suite::script;
use store::suite::script::keep;

/// A chain has all blocks of a log, and ends where the thread's row says.
pub(crate) async fn a_chain_has_every_block_and_ends_at_its_row(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.thread("t").await;
    author.commit_all(script()).await;
    let other = content.thread("u").await;
    let chain = content.durable.chain(&author.thread).await.unwrap();
    assert!(chain.holds);
    let n_events: u64 = chain.blocks.iter().map(|it| it.n_events).sum();
    assert_eq!((n_events, chain.end.tail), (author.tail.0, author.tail.0));
    assert_eq!(chain.row, content.store.row(&author.thread).await.unwrap());
    let mut next = 1;
    for block in &chain.blocks {
        assert_eq!((block.first, block.holds, block.erased), (next, true, None));
        next += block.n_events;
    }
    assert_eq!(chain.blocks.last().map(|it| it.sum), Some(chain.end.sum));
    let other = content.durable.chain(&other.thread).await.unwrap();
    let ends = content.durable.chain_ends().await.unwrap();
    assert_eq!(ends, [chain.end, other.end]);
}

/// A chain ends at the block that was changed.
pub(crate) async fn a_changed_block_ends_a_chain(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.thread("t").await;
    author.commit_all(script()).await;
    let n_blocks = content
        .durable
        .chain(&author.thread)
        .await
        .unwrap()
        .blocks
        .len();
    let sql = "UPDATE thread_blocks SET facts = facts - 1 WHERE first = (SELECT min(first) FROM thread_blocks WHERE first > 9 AND facts > 0)";
    assert_eq!(subject.execute(sql).await, 1);
    let chain = content.durable.chain(&author.thread).await.unwrap();
    assert!(!chain.holds && chain.blocks.len() < n_blocks);
    let (last, before) = chain.blocks.split_last().unwrap();
    assert!(!last.holds && before.iter().all(|it| it.holds));
}

/// A seal shows what became of a thread.
pub(crate) async fn a_sealed_thread_continues_is_older_differs_or_is_missing(
    subject: impl Operated,
) {
    let content = Content::of(subject.durable());
    let mut author = content.thread("t").await;
    author.commit(keep("i")).await;
    let compare = |sealed: ChainEnd| content.durable.compare(sealed);
    let sealed = content.durable.chain(&author.thread).await.unwrap().end;
    assert_eq!(compare(sealed.clone()).await.unwrap(), Compared::Continues);
    author.commit(keep("j")).await;
    assert_eq!(compare(sealed.clone()).await.unwrap(), Compared::Continues);
    let later = ChainEnd {
        tail: 99,
        ..sealed.clone()
    };
    assert_eq!(
        compare(later).await.unwrap(),
        Compared::Older(author.tail.0)
    );
    let other = ChainEnd {
        sum: [7; 16],
        ..sealed.clone()
    };
    assert_eq!(compare(other).await.unwrap(), Compared::Differs);
    let missing = ChainEnd {
        thread: "none".into(),
        ..sealed
    };
    assert_eq!(compare(missing).await.unwrap(), Compared::Missing);
}
