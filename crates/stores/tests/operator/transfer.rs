//! A tenant's data as lines, and back.

use super::{Content, Operated, acme};
use loomline_stores::{TransferError, Transferred};
use store::suite::Author;
use store::suite::script::keep;
use store::{StoreError, ThreadRows, Token};
use timeline::NewThread;

/// The lines without the program and the instant of the export, and without the sum over them.
pub(crate) fn own_lines(text: &[u8]) -> Vec<String> {
    let all = std::str::from_utf8(text).unwrap().lines();
    let mut all: Vec<_> = all.map(str::to_owned).collect();
    all.pop();
    all.remove(0);
    all
}

/// Everything that there is, with a token.
pub(crate) async fn fill(content: &Content) {
    Box::pin(content.everything()).await;
    let mut author = content.thread("tokens").await;
    let mut append = author.append_of(keep("i"));
    append.token = Some(Token {
        token: "once".to_owned(),
        answer: "{\"text\": \"ok\"}".to_owned(),
    });
    author.append(append).await.unwrap();
    content
        .durable
        .erase_removed(&"removed".into())
        .await
        .unwrap();
}

/// A deleted tenant that is imported again has the same lines, chains and usage as before.
pub(crate) async fn an_imported_tenant_is_exported_as_the_same_lines(mut subject: impl Operated) {
    let content = Content::of(subject.durable());
    fill(&content).await;
    let usage = content.store.usage().await.unwrap();
    let ends = content.durable.chain_ends().await.unwrap();
    let (text, counts) = subject.export("acme").await.unwrap();
    let expected = Transferred {
        threads: 9,
        tokens: 2,
        contents: 3,
        objects: 4,
        checkpoints: 2,
        events: counts.events,
    };
    assert_eq!(counts, expected);
    delete_tenant(&content).await;
    drop(content);

    assert_eq!(subject.import(&text).await.unwrap(), counts);

    let (again, _) = subject.export("acme").await.unwrap();
    assert_eq!(own_lines(&again), own_lines(&text));
    let content = Content::of(subject.durable());
    content.assert_sound().await;
    let mut now = content.durable.chain_ends().await.unwrap();
    now.sort_by(|one, other| one.thread.cmp(&other.thread));
    let mut ends = ends;
    ends.sort_by(|one, other| one.thread.cmp(&other.thread));
    assert_eq!(now, ends);
    assert_eq!(content.store.usage().await.unwrap(), usage);
    let answer = content
        .store
        .answer(&"tokens".into(), "once")
        .await
        .unwrap();
    assert_eq!(answer.as_deref(), Some("{\"text\": \"ok\"}"));
    let unfinished = content.store.unfinished().await.unwrap();
    assert!(unfinished.contains(&"running".into()), "{unfinished:?}");
    // A thread that is changed now comes before all imported ones.
    let mut author = Author::of(&content.store, "asking".into(), jiff::Timestamp::UNIX_EPOCH).await;
    author.append(author.append_with(Vec::new())).await.unwrap();
    let page = ThreadRows {
        limit: 1,
        ..ThreadRows::default()
    };
    let first = content.store.list(&acme(), page).await.unwrap();
    assert_eq!(first[0].thread.id, "asking".into());
}

async fn delete_tenant(content: &Content) {
    let page = ThreadRows {
        limit: 100,
        ..ThreadRows::default()
    };
    let mut rows = content.store.list(&acme(), page).await.unwrap();
    while !rows.is_empty() {
        let mut left = Vec::new();
        for row in rows {
            match content.store.delete(&acme(), &row.thread.id, None).await {
                Err(StoreError::HasForks { .. }) => left.push(row),
                other => other.unwrap(),
            }
        }
        rows = left;
    }
    content.durable.erase_tenant(&acme()).await.unwrap();
}

/// A tenant without data is refused.
pub(crate) async fn a_tenant_without_data_is_not_exported(subject: impl Operated) {
    let refused = subject.export("acme").await;
    let expected = matches!(&refused, Err(TransferError::NoTenant(name)) if name == "acme");
    assert!(expected, "{refused:?}");
}

/// Of two threads with one id or key, the second is refused, and nothing of its tenant is written.
pub(crate) async fn a_tenant_that_is_there_already_is_refused(mut subject: impl Operated) {
    let content = Content::of(subject.durable());
    fill(&content).await;
    let (text, _) = subject.export("acme").await.unwrap();
    let stats = content.durable.stats().await.unwrap();
    let usage = content.store.usage().await.unwrap();
    drop(content);
    let refused = subject.import(&text).await;
    let expected = matches!(
        refused,
        Err(TransferError::Store(
            StoreError::Duplicate(_) | StoreError::KeyTaken(_)
        ))
    );
    assert!(expected, "{refused:?}");
    let content = Content::of(subject.durable());
    assert_eq!(content.durable.stats().await.unwrap(), stats);
    assert_eq!(content.store.usage().await.unwrap(), usage);
    content.assert_sound().await;
}

/// A key of another thread is refused.
pub(crate) async fn an_import_with_a_taken_key_is_refused(mut subject: impl Operated) {
    let content = Content::of(subject.durable());
    let author = content.thread("t").await;
    let (text, _) = subject.export("acme").await.unwrap();
    content
        .store
        .delete(&acme(), &author.thread, None)
        .await
        .unwrap();
    Author::new(&content.store, "acme", NewThread::new("other", Some("t"))).await;
    drop(content);
    let refused = subject.import(&text).await;
    let expected = matches!(
        &refused,
        Err(TransferError::Store(StoreError::KeyTaken(key))) if key == "t"
    );
    assert!(expected, "{refused:?}");
    let content = Content::of(subject.durable());
    assert!(content.store.row(&author.thread).await.is_err());
    content.assert_sound().await;
}

/// A file that is cut, changed, or lacks a line is refused, and nothing is written.
pub(crate) async fn a_file_that_is_not_whole_is_refused(mut subject: impl Operated) {
    let content = Content::of(subject.durable());
    fill(&content).await;
    let (text, _) = subject.export("acme").await.unwrap();
    delete_tenant(&content).await;
    let stats = content.durable.stats().await.unwrap();
    drop(content);
    let changed = String::from_utf8(text.clone())
        .unwrap()
        .replacen("kept-0", "kept-x", 1);
    let lines: Vec<_> = std::str::from_utf8(&text).unwrap().lines().collect();
    let without = [&lines[..4], &lines[5..]].concat().join("\n") + "\n";
    for file in [
        &text[..text.len() / 2],
        changed.as_bytes(),
        without.as_bytes(),
        b"",
    ] {
        let refused = subject.import(file).await;
        let expected = matches!(refused, Err(TransferError::NotWhole(_)));
        assert!(expected, "{refused:?}");
    }
    let content = Content::of(subject.durable());
    assert_eq!(content.durable.stats().await.unwrap(), stats);
}

/// Lines that say something else than their log are refused though the sum over them is right.
pub(crate) async fn a_thread_that_is_not_what_its_log_says_is_refused(mut subject: impl Operated) {
    let content = Content::of(subject.durable());
    let author = content.thread("t").await;
    content.file("acme", "f", b"whatever").await;
    let (text, _) = subject.export("acme").await.unwrap();
    content
        .store
        .delete(&acme(), &author.thread, None)
        .await
        .unwrap();
    content.durable.erase_tenant(&acme()).await.unwrap();
    drop(content);
    let text = String::from_utf8(text).unwrap();
    let data = text.split("\"data\":\"").nth(1).unwrap();
    let data = data.split('"').next().unwrap();
    for (from, to) in [
        ("\"key\":\"t\",\"parent\"", "\"key\":\"u\",\"parent\""),
        ("\"format\":1", "\"format\":99"),
        ("\"parent\":null", "\"parent\":\"none\""),
        ("\"first\":1", "\"first\":2"),
        (data, "AAAA"),
    ] {
        let changed = sealed(&text.replacen(from, to, 1));
        let refused = subject.import(changed.as_bytes()).await;
        let expected = matches!(refused, Err(TransferError::Line { .. }));
        assert!(expected, "{from}: {refused:?}");
    }
    subject.import(sealed(&text).as_bytes()).await.unwrap();
}

/// The lines with the sum that they need.
fn sealed(text: &str) -> String {
    let (lines, last) = text.trim_end().rsplit_once('\n').unwrap();
    let lines = format!("{lines}\n");
    let digest = store::objects::sha256(lines.as_bytes());
    let digest = digest.map(|byte| format!("{byte:02x}")).concat();
    let (start, _) = last.split_once("\"sha256\":\"").unwrap();
    format!("{lines}{start}\"sha256\":\"{digest}\"}}}}\n")
}
