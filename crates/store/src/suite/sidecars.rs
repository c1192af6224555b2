//! Tests of the sidecar objects of a thread.

use super::Subject;
use super::objects::{content, ids, new, page, stored_object};
use super::script::{Author, tenant};
use crate::StoreError;
use crate::objects::NewObject;
use timeline::NewThread;

/// A thread's objects are deleted with it, and a content with the last object that has it. Objects of
/// another thread stay, and so do objects that were stored again without the thread.
pub async fn sidecar_objects_are_deleted_with_their_thread(subject: impl Subject) {
    let store = subject.store();
    let objects = store.objects();
    let one = Author::new(&store, "acme", NewThread::new("t", Some("a"))).await;
    let other = Author::new(&store, "acme", NewThread::new("u", Some("b"))).await;
    let put = async |id, content, beside: Option<&Author>| {
        let thread = beside.map(|author| author.thread.clone());
        let object = new("note", id, 1, content);
        let put = objects.put(&tenant(), NewObject { thread, ..object }).await;
        put.unwrap();
    };
    let (x, y) = (Some(&b"x"[..]), Some(&b"y"[..]));
    put("goes", x, Some(&one)).await;
    put("goes too", y, Some(&one)).await;
    put("another's", x, Some(&other)).await;
    put("nobody's", None, None).await;
    put("another's by now", None, Some(&one)).await;
    put("another's by now", None, Some(&other)).await;
    put("nobody's by now", None, Some(&one)).await;
    let before = stored_object("nobody's by now", 1, None);
    let alone = new("note", "nobody's by now", 1, None);
    let replaced = objects.replace(&tenant(), &before, alone).await;
    assert!(replaced.unwrap());

    store.delete(&tenant(), &one.thread, None).await.unwrap();

    let left = [
        "another's",
        "another's by now",
        "nobody's",
        "nobody's by now",
    ];
    assert_eq!(ids(&store, "note", page(9)).await, left);
    assert_eq!(content(&store, "note", "another's").await.as_deref(), x);
    store.delete(&tenant(), &other.thread, None).await.unwrap();
    let left = ["nobody's", "nobody's by now"];
    assert_eq!(ids(&store, "note", page(9)).await, left);
}

/// An object of a deleted thread or of another tenant's thread is refused; the existing object stays.
pub async fn a_deleted_thread_takes_no_sidecar_objects(subject: impl Subject) {
    let store = subject.store();
    let objects = store.objects();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("a"))).await;
    let beside = |id| NewObject {
        thread: Some(author.thread.clone()),
        is_limited: false,
        ..new("note", id, 2, None)
    };
    let not_found = |answer| matches!(answer, Err(StoreError::NotFound));
    let theirs = objects.put(&"globex".into(), beside("a")).await;
    assert!(not_found(theirs));
    objects
        .put(&tenant(), new("note", "a", 1, None))
        .await
        .unwrap();
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    for id in ["a", "b"] {
        assert!(not_found(objects.put(&tenant(), beside(id)).await));
    }
    let before = stored_object("a", 1, None);
    let replaced = objects.replace(&tenant(), &before, beside("a")).await;
    assert!(not_found(replaced.map(drop)));
    let found = objects.get(&tenant(), "note", "a").await.unwrap();
    assert_eq!(found, Some(before));
    assert_eq!(ids(&store, "note", page(9)).await, ["a"]);
}
