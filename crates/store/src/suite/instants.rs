//! Tests of instants while clocks are set back.

use super::Subject;
use super::script::{Author, item, record};
use jiff::Timestamp;
use timeline::{Event, NewThread};

/// A record may be earlier than the one before it: a clock was far ahead and was set back. A thread's last
/// change has the instant of its last record, and the next writer continues from that instant.
pub async fn the_instant_of_a_threads_last_change_is_that_of_its_last_event(
    mut subject: impl Subject,
) {
    let store = subject.store();
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let thread = NewThread::new("t", Some("k"));
    let mut author = Author::begin(&store, "acme", thread, at(0)).await;
    for (n, second) in [100, 40, 70].into_iter().enumerate() {
        let kept = item(&format!("kept-{n}")).stored(at(second));
        let event = Event::ItemCreated { item: kept };
        let mut append = author.append_with(Vec::new());
        append.records = vec![record(event, at(second))];
        author.append(append).await.unwrap();
        let row = store.row(&author.thread).await.unwrap();
        assert_eq!(row.thread.updated_at, Some(at(second)));
    }
    drop(store);
    subject.reopen().await;
    let head = subject.store().head(&author.thread).await.unwrap();
    assert_eq!(head.last_at, at(70));
}
