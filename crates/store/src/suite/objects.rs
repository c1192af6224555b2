//! Tests of the sidecar objects.

use super::Subject;
use super::script::{Author, tenant};
use crate::objects::{NewObject, ObjectPage, SidecarObject, sha256};
use crate::{Store, StoreError, TenantId, ThreadRows};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use timeline::NewThread;

const JSON: &str = r#"{"z":1.0,"a":12345678901234567890123,"n":null}"#;

fn second(n: i64) -> Timestamp {
    let since = SignedDuration::from_nanos(n * 1_000_000_000 + 7);
    Timestamp::UNIX_EPOCH.saturating_add(since).unwrap()
}

pub(super) fn new(kind: &str, id: &str, at: i64, content: Option<&[u8]>) -> NewObject {
    NewObject {
        kind: kind.into(),
        id: id.into(),
        created_at: second(at),
        json: JSON.into(),
        content: content.map(<[u8]>::to_vec),
        thread: None,
        is_limited: true,
    }
}

pub(super) fn stored_object(id: &str, at: i64, content: Option<&[u8]>) -> SidecarObject {
    SidecarObject {
        id: id.into(),
        created_at: second(at),
        json: JSON.into(),
        bytes: content.map(|content| content.len() as u64),
        sha256: content.map(sha256),
    }
}

pub(super) async fn content(store: &Arc<dyn Store>, kind: &str, id: &str) -> Option<Vec<u8>> {
    let found = store.objects().content(&tenant(), kind, id).await.unwrap();
    found.map(|content| content.to_vec())
}

pub(super) async fn ids(store: &Arc<dyn Store>, kind: &str, page: ObjectPage) -> Vec<String> {
    let found = store.objects().list(&tenant(), kind, page).await.unwrap();
    found.into_iter().map(|object| object.id).collect()
}

pub(super) fn page(limit: usize) -> ObjectPage {
    ObjectPage {
        limit,
        ..ObjectPage::default()
    }
}

/// JSON, instant and content are returned unchanged, also by a reopened store.
pub async fn an_object_is_stored_byte_for_byte(mut subject: impl Subject) {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let store = subject.store();
    let objects = store.objects();
    let assistant = new("assistant", "any text: é/\u{0}", 1, None);
    objects.put(&tenant(), assistant).await.unwrap();
    let file = new("file", "f", 2, Some(&bytes));
    objects.put(&tenant(), file).await.unwrap();
    let empty = new("file", "empty", 3, Some(b""));
    objects.put(&tenant(), empty).await.unwrap();
    drop(store);

    subject.reopen().await;

    let store = subject.store();
    for (kind, expected) in [
        ("assistant", stored_object("any text: é/\u{0}", 1, None)),
        ("file", stored_object("f", 2, Some(&bytes))),
        ("file", stored_object("empty", 3, Some(b""))),
    ] {
        let found = store.objects().get(&tenant(), kind, &expected.id).await;
        assert_eq!(found.unwrap(), Some(expected));
    }
    assert_eq!(content(&store, "file", "f").await, Some(bytes));
    assert_eq!(content(&store, "file", "empty").await, Some(Vec::new()));
    assert_eq!(
        content(&store, "assistant", "any text: é/\u{0}").await,
        None
    );
}

/// The last object stored under an id replaces the previous one completely.
pub async fn an_object_replaces_the_one_before(subject: impl Subject) {
    let store = subject.store();
    let put = async |object| store.objects().put(&tenant(), object).await.unwrap();
    put(new("file", "a", 1, Some(b"one"))).await;
    put(new("file", "b", 2, None)).await;
    let mut newer = new("file", "a", 3, Some(b"three"));
    newer.json = "{}".into();
    put(newer).await;
    assert_eq!(ids(&store, "file", page(9)).await, ["b", "a"]);
    let found = store.objects().get(&tenant(), "file", "a").await.unwrap();
    let mut expected = stored_object("a", 3, Some(b"three"));
    expected.json = "{}".into();
    assert_eq!(found, Some(expected));
    put(new("file", "a", 3, None)).await;
    assert_eq!(content(&store, "file", "a").await, None);
    assert_eq!(ids(&store, "file", page(9)).await, ["b", "a"]);
}

/// Objects of one instant are ordered by id; pages return each once, from either end.
pub async fn objects_are_listed_in_pages_without_gap_or_repeat(subject: impl Subject) {
    let store = subject.store();
    let mut expected = Vec::new();
    for at in [3, 1, 2] {
        for id in ["b", "c", "a"] {
            let id = format!("{id}-{at}");
            let object = new("assistant", &id, at, None);
            store.objects().put(&tenant(), object).await.unwrap();
            expected.push((at, id));
        }
    }
    let stranger = new("file", "f", 2, None);
    store.objects().put(&tenant(), stranger).await.unwrap();
    expected.sort();
    let mut expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
    for newest_first in [false, true] {
        for limit in [1, 2, 4, 9, 10] {
            let mut found: Vec<String> = Vec::new();
            loop {
                let page = ObjectPage {
                    after: found.last().cloned(),
                    newest_first,
                    limit,
                    ..ObjectPage::default()
                };
                let more = ids(&store, "assistant", page).await;
                assert!(more.len() <= limit);
                if more.is_empty() {
                    break;
                }
                found.extend(more);
            }
            assert_eq!(found, expected);
        }
        expected.reverse();
    }
    assert_eq!(ids(&store, "assistant", page(0)).await, [""; 0]);
    assert_eq!(ids(&store, "nothing", page(9)).await, [""; 0]);
}

/// A page after a missing object is refused.
pub async fn a_page_after_an_unknown_object_is_refused(subject: impl Subject) {
    let store = subject.store();
    let object = new("file", "a", 1, None);
    store.objects().put(&tenant(), object).await.unwrap();
    for (kind, id) in [("file", "b"), ("assistant", "a")] {
        let page = ObjectPage {
            after: Some(id.into()),
            ..page(9)
        };
        let refused = store.objects().list(&tenant(), kind, page).await;
        assert!(
            matches!(&refused, Err(StoreError::NoSuchObject { id: found, .. }) if found == id),
            "{refused:?}"
        );
    }
}

/// A walk continues from an instant and an id, even if the object there was deleted.
pub async fn a_walk_goes_on_from_where_an_object_was(subject: impl Subject) {
    let store = subject.store();
    for (id, at) in [("a", 1), ("b", 2), ("c", 2), ("d", 3)] {
        let object = new("file", id, at, None);
        store.objects().put(&tenant(), object).await.unwrap();
    }
    let gone = store.objects().get(&tenant(), "file", "b").await.unwrap();
    let gone = gone.unwrap();
    assert!(
        store
            .objects()
            .delete(&tenant(), "file", "b", None)
            .await
            .unwrap()
    );
    for (newest_first, expected) in [(false, &["c", "d"][..]), (true, &["a"])] {
        let page = ObjectPage {
            beyond: Some((gone.created_at, gone.id.clone())),
            newest_first,
            ..page(9)
        };
        assert_eq!(ids(&store, "file", page).await, expected);
    }
}

/// A deletion removes exactly the named object, once.
pub async fn a_deleted_object_is_gone(subject: impl Subject) {
    let store = subject.store();
    for id in ["a", "b"] {
        let object = new("file", id, 1, Some(b"x"));
        store.objects().put(&tenant(), object).await.unwrap();
    }
    let delete = async |kind, id| {
        store
            .objects()
            .delete(&tenant(), kind, id, None)
            .await
            .unwrap()
    };
    assert!(!delete("assistant", "a").await);
    assert!(delete("file", "a").await);
    assert!(!delete("file", "a").await);
    let found = store.objects().get(&tenant(), "file", "a").await.unwrap();
    assert_eq!(found, None);
    assert_eq!(ids(&store, "file", page(9)).await, ["b"]);
    let again = new("file", "a", 2, None);
    store.objects().put(&tenant(), again).await.unwrap();
    assert_eq!(ids(&store, "file", page(9)).await, ["b", "a"]);
}

/// `replace` leaves an object unchanged that was changed or deleted since it was read.
pub async fn an_object_is_replaced_only_as_it_was_read(subject: impl Subject) {
    let store = subject.store();
    let objects = store.objects();
    let get = async || objects.get(&tenant(), "file", "a").await.unwrap();
    let replace = async |before: &SidecarObject, object| {
        let replaced = objects.replace(&tenant(), before, object).await;
        replaced.unwrap()
    };
    let object = new("file", "a", 1, Some(b"x"));
    objects.put(&tenant(), object).await.unwrap();
    let first = get().await.unwrap();
    assert!(replace(&first, new("file", "a", 1, Some(b"y"))).await);
    assert_eq!(
        content(&store, "file", "a").await.as_deref(),
        Some(&b"y"[..])
    );
    // By its content alone it is another one now.
    assert!(!replace(&first, new("file", "a", 1, None)).await);
    let second = get().await.unwrap();
    assert_eq!(second, stored_object("a", 1, Some(b"y")));
    // Another object is not it, whatever it is like.
    assert!(!replace(&second, new("file", "b", 1, None)).await);
    assert!(!replace(&second, new("image", "a", 1, None)).await);
    assert!(replace(&second, new("file", "a", 2, None)).await);
    assert_eq!(get().await, Some(stored_object("a", 2, None)));
    assert_eq!(content(&store, "file", "a").await, None);
    let third = get().await.unwrap();
    assert!(objects.delete(&tenant(), "file", "a", None).await.unwrap());
    assert!(!replace(&third, new("file", "a", 2, None)).await);
    assert_eq!(get().await, None);
    assert_eq!(ids(&store, "file", page(9)).await, Vec::<String>::new());
}

/// `delete` leaves an object in place that was replaced since it was read.
pub async fn an_object_is_deleted_only_as_it_was_read(subject: impl Subject) {
    let store = subject.store();
    let objects = store.objects();
    let delete = async |tenant, kind, before: &SidecarObject| {
        let deleted = objects.delete(tenant, kind, &before.id, Some(before)).await;
        deleted.unwrap()
    };
    let (acme, globex) = (tenant(), TenantId::from("globex"));
    let first = stored_object("a", 1, Some(b"x"));
    let object = new("file", "a", 1, Some(b"x"));
    objects.put(&acme, object).await.unwrap();
    let object = new("file", "a", 1, Some(b"y"));
    objects.put(&acme, object).await.unwrap();
    let second = stored_object("a", 1, Some(b"y"));
    for (whose, kind, before) in [
        (&acme, "file", &first),
        (&acme, "image", &second),
        (&globex, "file", &second),
    ] {
        assert!(!delete(whose, kind, before).await);
        let found = objects.get(&acme, "file", "a").await.unwrap();
        assert_eq!(found.as_ref(), Some(&second));
    }
    assert!(delete(&acme, "file", &second).await);
    assert!(!delete(&acme, "file", &second).await);
    assert_eq!(objects.get(&acme, "file", "a").await.unwrap(), None);
    assert_eq!(content(&store, "file", "a").await, None);
}

/// A content that two objects share exists until the last of them is deleted.
pub async fn a_content_stays_until_the_last_object_that_has_it_goes(subject: impl Subject) {
    let store = subject.store();
    let x = Some(&b"shared"[..]);
    for (kind, id) in [("file", "a"), ("file", "b"), ("image", "a")] {
        let object = new(kind, id, 1, x);
        store.objects().put(&tenant(), object).await.unwrap();
    }
    let objects = store.objects();
    objects.delete(&tenant(), "file", "a", None).await.unwrap();
    assert_eq!(content(&store, "file", "a").await, None);
    assert_eq!(content(&store, "file", "b").await.as_deref(), x);
    let other = new("file", "b", 1, Some(b"other"));
    objects.put(&tenant(), other).await.unwrap();
    assert_eq!(content(&store, "image", "a").await.as_deref(), x);
    // Written again in place of itself, it is still there.
    let same = new("image", "a", 1, x);
    objects.put(&tenant(), same).await.unwrap();
    assert_eq!(content(&store, "image", "a").await.as_deref(), x);
    objects.delete(&tenant(), "image", "a", None).await.unwrap();
    let back = new("file", "c", 1, x);
    objects.put(&tenant(), back).await.unwrap();
    assert_eq!(content(&store, "file", "c").await.as_deref(), x);
}

/// One kind and id in two tenants is two objects; so are their contents.
pub async fn objects_never_cross_tenants(subject: impl Subject) {
    let store = subject.store();
    let x = Some(&b"x"[..]);
    let object = new("file", "a", 1, x);
    store.objects().put(&tenant(), object).await.unwrap();
    for other in ["globex", "acm", "acme2", ""].map(TenantId::from) {
        let objects = store.objects();
        assert_eq!(objects.get(&other, "file", "a").await.unwrap(), None);
        assert_eq!(objects.content(&other, "file", "a").await.unwrap(), None);
        assert_eq!(objects.list(&other, "file", page(9)).await.unwrap(), []);
        assert!(!objects.delete(&other, "file", "a", None).await.unwrap());
        let own = new("file", "a", 2, x);
        let its = stored_object("a", 1, x);
        let replaced = objects.replace(&other, &its, own.clone()).await;
        assert!(!replaced.unwrap());
        objects.put(&other, own).await.unwrap();
        assert!(objects.delete(&other, "file", "a", None).await.unwrap());
    }
    assert_eq!(content(&store, "file", "a").await.as_deref(), x);
    assert_eq!(ids(&store, "file", page(9)).await, ["a"]);
}

/// Threads and objects are independent of each other.
pub async fn objects_and_threads_do_not_disturb_each_other(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("a"))).await;
    let object = new("thread", "t", 1, None);
    store.objects().put(&tenant(), object).await.unwrap();
    let all = ThreadRows {
        limit: 9,
        ..ThreadRows::default()
    };
    assert_eq!(store.list(&tenant(), all).await.unwrap().len(), 1);
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    assert_eq!(ids(&store, "thread", page(9)).await, ["t"]);
}

fn closed<T>(answer: Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Closed))
}

/// A closed store neither stores nor returns objects.
pub async fn a_closed_store_has_no_objects_to_give(subject: impl Subject) {
    let store = subject.store();
    let objects = store.objects();
    let object = new("file", "a", 1, Some(b"x"));
    objects.put(&tenant(), object.clone()).await.unwrap();
    store.close().await.unwrap();
    let before = stored_object("a", 1, Some(b"x"));
    let replaced = objects.replace(&tenant(), &before, object.clone()).await;
    assert!(closed(replaced));
    assert!(closed(objects.put(&tenant(), object).await));
    assert!(closed(objects.get(&tenant(), "file", "a").await));
    assert!(closed(objects.content(&tenant(), "file", "a").await));
    assert!(closed(objects.list(&tenant(), "file", page(9)).await));
    assert!(closed(objects.delete(&tenant(), "file", "a", None).await));
    let deleted = objects
        .delete(&tenant(), "file", &before.id, Some(&before))
        .await;
    assert!(closed(deleted));
}
