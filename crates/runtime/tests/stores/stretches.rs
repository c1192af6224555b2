//! Pieces of long threads, through the runtime.

use crate::runtime::Runtime;
use crate::runtime::RuntimeError;
use crate::runtime::{PageRequest, Position, ThreadPage};
use crate::runtime_on;
use serde_json::json;
use store::suite::Subject;
use store::suite::rolled;
use store::suite::script::{
    Author, answer, complete_step, end, enqueue, fork, item, keep, leave_open, respond, start,
    tenant,
};
use store::{Filter, Landmark};
use timeline::{Command, Entry, Fork, ItemType, NewItem, NewThread, Seq, Trigger};

async fn read(runtime: &Runtime, key: &str, stretch: PageRequest) -> ThreadPage {
    let read = runtime.page(&tenant(), key, stretch, Filter::All).await;
    read.unwrap()
}

async fn whole(runtime: &Runtime, key: &str) -> Vec<Entry> {
    let read = runtime.transcript(&tenant(), key, Filter::All).await;
    read.unwrap().entries
}

/// All pages from the end, put together.
async fn backwards(runtime: &Runtime, key: &str, n: usize) -> Vec<Entry> {
    let mut before = Position::END;
    let mut entries = Vec::new();
    loop {
        let page = read(runtime, key, PageRequest::Before { before, n }).await;
        assert!(page.first < before, "{page:?}");
        before = page.first;
        entries.splice(0..0, page.transcript.entries);
        if !page.more {
            return entries;
        }
    }
}

/// All pages from the beginning, put together.
async fn forwards(runtime: &Runtime, key: &str, n: usize) -> Vec<Entry> {
    let mut after = Position::START;
    let mut entries = Vec::new();
    loop {
        let page = read(runtime, key, PageRequest::After { after, n }).await;
        assert!(page.last > after, "{page:?}");
        after = page.last;
        entries.extend(page.transcript.entries);
        if !page.more {
            return entries;
        }
    }
}

/// What an item, an execution or a step is called, to compare lists by.
fn names(entries: &[Entry]) -> Vec<String> {
    let name = |entry: &Entry| match entry {
        Entry::Item(item) => item.id.to_string(),
        Entry::Reaction(reaction) => reaction.execution.id.to_string(),
    };
    entries.iter().map(name).collect()
}

async fn told(
    subject: &impl Subject,
    id: &str,
    of: Option<Fork>,
    commands: Vec<Command>,
) -> Author {
    let mut thread = NewThread::new(id, Some(id));
    thread.fork = of;
    let mut author = Author::new(&subject.store(), "acme", thread).await;
    author.commit_some(commands).await;
    author
}

/// Page after page, from either end, is the conversation: nothing is missing, nothing comes twice,
/// and no execution is cut. What waited stands where it was answered.
pub(crate) async fn pages_of_a_thread_are_its_conversation(subject: impl Subject) {
    for seed in 1..=4 {
        let id = format!("t{seed}");
        let mut commands = rolled(seed, 0..150);
        commands.extend([enqueue("waits"), keep("last")]);
        told(&subject, &id, None, commands).await;
        let runtime = runtime_on(&subject);
        let whole = whole(&runtime, &id).await;
        assert!(whole.len() > 20, "seed {seed}");
        for n in [1, 2, 5, 1_000] {
            let pages = backwards(&runtime, &id, n).await;
            assert_eq!(names(&pages), names(&whole), "seed {seed}, {n} backwards");
            assert_eq!(pages, whole);
            let pages = forwards(&runtime, &id, n).await;
            assert_eq!(names(&pages), names(&whole), "seed {seed}, {n} forwards");
            assert_eq!(pages, whole);
        }
    }
}

/// So are the pages of a fork of a fork, from its ancestors' first words to its own last.
pub(crate) async fn pages_of_a_fork_begin_with_its_ancestors(subject: impl Subject) {
    let mut author = told(&subject, "root", None, rolled(5, 0..60)).await;
    let stop = Command::End {
        ending: timeline::Ending::Stopped(timeline::Interruption {
            reason: "timeout".into(),
            detail: None,
        }),
    };
    author
        .commit_some([stop.clone(), enqueue("waits there")])
        .await;
    let of = fork("root", author.tail.0);
    author.commit_some(rolled(6, 100..140)).await;
    let mut middle = told(&subject, "middle", Some(of), rolled(7, 200..260)).await;
    middle.commit_some([stop]).await;
    let of = fork("middle", middle.tail.0);
    told(&subject, "leaf", Some(of), rolled(8, 300..360)).await;

    let runtime = runtime_on(&subject);
    let whole = whole(&runtime, "leaf").await;
    assert!(whole.len() > 20, "{}", whole.len());
    for n in [1, 3, 1_000] {
        assert_eq!(backwards(&runtime, "leaf", n).await, whole, "{n}");
        assert_eq!(forwards(&runtime, "leaf", n).await, whole, "{n}");
    }
    for (at, entry) in whole.iter().enumerate() {
        let Entry::Item(item) = entry else { continue };
        let landmark = Landmark::Item(&item.id);
        let place = runtime.position_of(&tenant(), "leaf", landmark).await;
        let before = place.unwrap().unwrap();
        let page = read(&runtime, "leaf", PageRequest::Before { before, n: 1_000 }).await;
        // At least what comes before it, and what is beyond it only as far as its execution goes.
        assert_eq!(page.first, Position(1));
        assert!(page.transcript.entries.len() >= at, "{at}");
        assert_eq!(
            page.transcript.entries[..],
            whole[..page.transcript.entries.len()]
        );
    }
    let elsewhere = Landmark::Item(&"waits there".into());
    let found = runtime
        .position_of(&tenant(), "leaf", elsewhere)
        .await
        .unwrap();
    assert_eq!(
        found,
        runtime
            .position_of(&tenant(), "root", elsewhere)
            .await
            .unwrap()
    );
}

/// A pointer to what another execution answers: the trigger of one that goes on with it.
fn pointer(id: &str) -> NewItem {
    NewItem {
        item_type: ItemType::ItemReference,
        role: None,
        content: Some(json!({"itemId": "ask-1"}).into()),
        ..item(id)
    }
}

/// What begins when an agent hands over to another one.
fn hand_over(name: &str) -> Command {
    Command::Start {
        trigger: Trigger::New(pointer(name)),
        run: Some(json!({"agent": "other", "handoffs": 1}).into()),
        execution_id: format!("{name}-execution").into(),
        reaction_item_id: format!("{name}-reaction").into(),
        step_id: format!("{name}-step-0").into(),
        workflow_run_id: None,
    }
}

fn three_runs() -> Vec<Command> {
    vec![
        start("zero", Trigger::New(item("ask-0"))),
        complete_step(None),
        end(),
        keep("before"),
        start("one", Trigger::New(item("ask-1"))),
        respond(),
        complete_step(None),
        end(),
        hand_over("over"),
        respond(),
        leave_open(),
        end(),
        start("answered", Trigger::New(answer("yes"))),
        enqueue("ask-2"),
        complete_step(None),
        end(),
        keep("between"),
        start("two", Trigger::Waiting),
        complete_step(None),
        end(),
        keep("after"),
    ]
}

/// An execution comes with what was said since the one before, and with those it has handed over
/// to; a run also with those that answers to its calls have begun.
pub(crate) async fn a_stretch_of_an_execution_has_what_belongs_to_it(subject: impl Subject) {
    let author = told(&subject, "t", None, three_runs()).await;
    let runtime = runtime_on(&subject);
    let of = async |stretch| {
        let read = read(&runtime, "t", stretch).await;
        (names(&read.transcript.entries), read.more)
    };
    let execution = |name: &str| PageRequest::Execution(format!("{name}-execution").into());
    let zero = ["ask-0", "zero-execution"];
    assert_eq!(
        of(execution("zero")).await,
        (zero.map(str::to_owned).into(), true)
    );
    let one = ["before", "ask-1", "one-execution", "over", "over-execution"];
    assert_eq!(
        of(execution("one")).await,
        (one.map(str::to_owned).into(), true)
    );
    let run = PageRequest::Run("one-execution".into());
    let both = [&one[..], &["yes", "answered-execution"]].concat();
    let both: Vec<String> = both.into_iter().map(str::to_owned).collect();
    assert_eq!(of(run).await, (both, true));
    let two = ["between", "ask-2", "two-execution"];
    assert_eq!(
        of(execution("two")).await,
        (two.map(str::to_owned).into(), true)
    );

    let read = read(&runtime, "t", execution("two")).await;
    let thread = read.transcript.thread.unwrap();
    assert_eq!(thread.id, author.thread);
    let whole = whole(&runtime, "t").await;
    let own = |entry: &&Entry| matches!(entry, Entry::Reaction(it) if it.execution.id.as_str() == "two-execution");
    assert_eq!(
        read.transcript.entries.iter().find(own),
        whole.iter().find(own)
    );
    let unknown = PageRequest::Execution("nobody".into());
    let refused = runtime.page(&tenant(), "t", unknown, Filter::Facts).await;
    assert!(
        matches!(&refused, Err(RuntimeError::UnknownExecution(id)) if id.as_str() == "nobody"),
        "{refused:?}"
    );
}

/// A run that nobody's message has begun is a run of its own, and not what goes on with the one before.
pub(crate) async fn a_run_without_a_message_is_a_stretch_of_its_own(subject: impl Subject) {
    let run = |name: &str| {
        let begin = start(name, Trigger::New(pointer(&format!("{name}-pointer"))));
        [begin, complete_step(None), end()]
    };
    let commands = ["one", "two", "three"].into_iter().flat_map(run);
    let messages = [keep("m-1"), keep("m-2"), keep("m-3")];
    told(&subject, "t", None, commands.chain(messages).collect()).await;
    let runtime = runtime_on(&subject);
    for stretch in [PageRequest::Execution, PageRequest::Run] {
        let page = read(&runtime, "t", stretch("two-execution".into())).await;
        let expected = ["two-pointer", "two-execution"];
        assert_eq!(names(&page.transcript.entries), expected);
    }
    // What ran before anything was said is not forgotten.
    let n = 3;
    let before = Position::END;
    let page = read(&runtime, "t", PageRequest::Before { before, n }).await;
    assert_eq!(names(&page.transcript.entries), ["m-1", "m-2", "m-3"]);
    assert!(page.more);
    assert_eq!(
        backwards(&runtime, "t", n).await,
        whole(&runtime, "t").await
    );
}

/// What is no message can stand before the first one, and is read with it.
pub(crate) async fn what_was_kept_before_the_first_message_is_read_with_it(subject: impl Subject) {
    let kept = NewItem::reference("kept", None);
    let commands = vec![Command::Record { item: kept }, keep("m-1"), keep("m-2")];
    told(&subject, "t", None, commands).await;
    let runtime = runtime_on(&subject);
    for n in 1..4 {
        let all = backwards(&runtime, "t", n).await;
        assert_eq!(names(&all), ["kept", "m-1", "m-2"], "{n} at once");
    }
    let before = Position::END;
    let page = read(&runtime, "t", PageRequest::Before { before, n: 2 }).await;
    assert!(
        !page.more && page.first == Position::START.next(),
        "{page:?}"
    );
}

/// An execution that runs is read up to the end of the log, from any place in it.
pub(crate) async fn a_place_within_an_execution_stands_for_all_of_it(subject: impl Subject) {
    let commands = vec![
        keep("first"),
        start("one", Trigger::New(item("ask"))),
        respond(),
        keep("beside"),
    ];
    let author = told(&subject, "t", None, commands).await;
    let runtime = runtime_on(&subject);
    let step = "one-step-0".into();
    let place = runtime
        .position_of(&tenant(), "t", Landmark::Step(&step))
        .await;
    let step = place.unwrap().unwrap();
    let (tail, n) = (Position(author.tail.0), 1);
    for (stretch, expected) in [
        (
            PageRequest::Execution("one-execution".into()),
            &["first", "ask", "one-execution", "beside"][..],
        ),
        (
            PageRequest::Before {
                before: Position::END,
                n,
            },
            &["ask", "one-execution", "beside"],
        ),
        (
            PageRequest::Before { before: step, n },
            &["ask", "one-execution", "beside"],
        ),
        (
            PageRequest::After { after: step, n },
            &["ask", "one-execution", "beside"],
        ),
    ] {
        let page = read(&runtime, "t", stretch.clone()).await;
        assert_eq!(names(&page.transcript.entries), expected, "{stretch:?}");
        assert_eq!((page.last, page.transcript.seq), (tail, author.tail));
    }
    // Of an empty end there is nothing.
    let page = read(
        &runtime,
        "t",
        PageRequest::Before {
            before: Position::START,
            n,
        },
    )
    .await;
    assert_eq!((page.transcript.entries.len(), page.more), (0, false));
    let idle = told(&subject, "idle", None, three_runs()).await;
    let page = read(
        &runtime,
        "idle",
        PageRequest::After {
            after: Position(idle.tail.0),
            n,
        },
    )
    .await;
    assert_eq!((page.transcript.entries.len(), page.more), (0, false));
    assert_eq!(page.transcript.thread.unwrap().id, idle.thread);
    assert_eq!(page.transcript.seq, Seq::ZERO);
}
