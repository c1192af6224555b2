//! Lists of messages and streams into an archive.

use super::agents::Agents;
use super::source::{self, SourceMessage};
use super::{AiSdkError, instant, named, namespace, text_of};
use crate::archive::{Archive, ArchivedRun, Format, SourceText};
use crate::convert::{ReadOptions, Trust};
use crate::{Converted, Losses};
use thread::{Json, Object};

/// Reads a list of UI messages, or the body of a chat request that contains one.
///
/// Each user's message starts a run. A system message before the first user's message belongs to that
/// run. An entry that is a UI message of no version is refused, with its place. Unknown parts and
/// members are retained.
///
/// ```
/// use loomline_interop::ai_sdk::{read_messages, write_messages};
/// use loomline_interop::convert::{ReadOptions, WriteOptions};
///
/// let list = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}]"#;
/// let read = read_messages(list, &ReadOptions::default())?;
/// assert_eq!(read.losses, []);
/// assert_eq!(write_messages(&read.value, &WriteOptions::default()).value, list);
/// # Ok::<(), loomline_interop::ai_sdk::AiSdkError>(())
/// ```
pub fn read_messages(text: &str, options: &ReadOptions) -> Result<Converted<Archive>, AiSdkError> {
    let said = source::messages(text, &options.limits)?;
    let times = said.iter().map(|said| said.json.get("metadata"));
    let mut archive = begun(text, options, times);
    let mut losses = Losses::default();
    let first = archive.root.get_str("created_at").unwrap_or_default();
    let first = first.to_owned();
    push(&mut archive, said, 0, &first, options, &mut losses);
    Ok(losses.with(archive))
}

/// Reads a UI message stream: server-sent events, or an array of chunks.
///
/// A text with neither an event nor a comment is refused. Other lines that are not fields of an event
/// are reported. Chunks after `[DONE]` count, as they do for clients.
pub fn read_stream(text: &str, options: &ReadOptions) -> Result<Converted<Archive>, AiSdkError> {
    let mut losses = Losses::default();
    let run = stream_run(text, options, &mut losses)?;
    let chunks: Vec<Json> = run.records.iter().map(SourceText::json).collect();
    let times = chunks.iter().map(|chunk| chunk.get("messageMetadata"));
    let mut archive = begun(text, options, times);
    let first = archive.root.get_str("created_at").unwrap_or_default();
    let first = first.to_owned();
    let agent_id = Agents::of(&options.attribution).registered(&mut archive, 0, &first);
    archive.runs.push(ArchivedRun {
        agent_id: Some(agent_id),
        ..run
    });
    Ok(losses.with(archive))
}

/// A stream as a run of no one yet.
pub(super) fn stream_run(
    text: &str,
    options: &ReadOptions,
    losses: &mut Losses,
) -> Result<ArchivedRun, AiSdkError> {
    let streamed = source::chunks(text, &options.limits, losses)?;
    let mut run = ArchivedRun::new(Format::AiSdkStream, None, streamed.chunks);
    run.head = head(options).with("done", streamed.done);
    if !streamed.done_at.is_empty() {
        let places = streamed.done_at.iter().map(|place| *place as u64);
        run.head
            .insert("done_at", places.map(Json::from).collect::<Json>());
    }
    Ok(run)
}

fn head(options: &ReadOptions) -> Object {
    Object::new()
        .with("ai_sdk", u64::from(options.ai_sdk))
        .with("at", options.at.as_str())
}

/// An archive without runs, of a source with these metadata.
fn begun<'a>(
    text: &str,
    options: &ReadOptions,
    metadata: impl DoubleEndedIterator<Item = Option<&'a Json>> + Clone,
) -> Archive {
    let first = metadata.clone().find_map(instant);
    let last = metadata.rev().find_map(instant);
    let thread_id = options.thread_id.clone();
    let root = Object::new()
        .with("thread_id", thread_id.unwrap_or_else(|| named(text)))
        .with("created_at", first.unwrap_or(&options.at))
        .with("updated_at", last.unwrap_or(&options.at))
        .with_some("title", options.title.as_deref())
        .with("agents", Object::new());
    Archive {
        root,
        runs: Vec::new(),
    }
}

/// The run that the last messages were read into.
#[derive(Clone, Copy)]
enum Open {
    /// No run that could continue.
    No,
    /// One of UI messages.
    Ui,
    /// A run restored from namespaces: its number, and how many of its messages have been read.
    Told { run: u64, came: u64, of: u64 },
}

/// Appends messages to the archive's runs. The first of them is number `from` of its source.
pub(super) fn push(
    archive: &mut Archive,
    said: Vec<SourceMessage>,
    from: usize,
    at: &str,
    options: &ReadOptions,
    losses: &mut Losses,
) {
    let last = archive.runs.last();
    let mut open = match last.map(|run| run.format) {
        Some(Format::AiSdkUi) => Open::Ui,
        Some(Format::PydanticAi | Format::AiSdkStream | Format::Thread) | None => Open::No,
    };
    let mut asked = last.is_some_and(|run| !only_systems(run));
    let agents = Agents::of(&options.attribution);
    let mut order = Order {
        run: None,
        between: !archive.runs.is_empty(),
    };
    for (place, SourceMessage { record, json }) in (from..).zip(said) {
        let mut note = |what: String| {
            losses.push(format!("/{place}/metadata/loomline"), what);
        };
        let before = open;
        if namespace::is_sealed(&json) {
            let told = match options.trust {
                Trust::Nothing => Err("it came from who could have written anything"),
                Trust::OwnNamespace => read_run(archive, &json, &mut open, options),
            };
            match told {
                Ok(()) => {
                    if let Open::Told { run, came: 1, .. } = open {
                        if let Some(n) = missing(before) {
                            note(format!("{n} messages of the run before it"));
                        }
                        if !order.follows(run) {
                            note("the runs before it, or their order".to_owned());
                        }
                    }
                    asked = true;
                    continue;
                }
                Err(why) => note(format!("our namespace, which is not believed: {why}")),
            }
        }
        if let Some(n) = missing(open) {
            note(format!("{n} messages of the run before it"));
        }
        let is_user = text_of(&json, "role") == "user";
        if !matches!(open, Open::Ui) || (is_user && asked) {
            let agent_id = agents.registered(archive, place, at);
            let mut run = ArchivedRun::new(Format::AiSdkUi, Some(&agent_id), Vec::new());
            run.head = head(options);
            archive.runs.push(run);
            open = Open::Ui;
            asked = false;
        }
        asked |= text_of(&json, "role") != "system";
        order.between = true;
        if let Some(run) = archive.runs.last_mut() {
            run.records.push(record);
        }
    }
    if let Some(n) = missing(open) {
        losses.push("", format!("the last {n} messages of the last run"));
    }
}

/// The last run restored from namespaces, and whether other messages have come since.
struct Order {
    run: Option<u64>,
    between: bool,
}

impl Order {
    /// Whether this run may be the next.
    fn follows(&mut self, run: u64) -> bool {
        let next = self
            .run
            .replace(run)
            .map_or(0, |last| last.saturating_add(1));
        run == next || (run > next && std::mem::take(&mut self.between))
    }
}

/// Number of a run's messages that are missing, if any.
fn missing(open: Open) -> Option<u64> {
    match open {
        Open::Told { came, of, .. } => of.checked_sub(came).filter(|n| *n > 0),
        Open::No | Open::Ui => None,
    }
}

fn only_systems(run: &ArchivedRun) -> bool {
    let mut records = run.records.iter();
    run.format == Format::AiSdkUi
        && records.all(|record| text_of(&record.json(), "role") == "system")
}

/// Restores a run's records from a message's namespace. The error names the reason for not trusting
/// it.
fn read_run(
    archive: &mut Archive,
    message: &Json,
    open: &mut Open,
    options: &ReadOptions,
) -> Result<(), &'static str> {
    const BROKEN: &str = "it is not what this program writes";
    let sealed = namespace::open(message, &options.limits)?;
    let mut carried = sealed.carried;
    let records = carried.remove("records").and_then(Json::into_array);
    let records: Vec<SourceText> = records
        .ok_or(BROKEN)?
        .iter()
        .map(SourceText::from)
        .collect();
    if sealed.position > 0 {
        let goes_on = matches!(open, Open::Told { run, came, of }
            if *run == sealed.run && *came == sealed.position && *of == sealed.of);
        let last = archive.runs.last_mut().filter(|_| goes_on);
        let last = last.ok_or("the messages that its run began with are not before it")?;
        last.records.extend(records);
    } else {
        let format = carried.get_str("format").and_then(Format::of);
        let head = carried.get("head").and_then(Json::as_object);
        let mut run = ArchivedRun::new(format.ok_or(BROKEN)?, carried.get_str("agent_id"), records);
        run.head = head.cloned().unwrap_or_default();
        if let Some(Json::Object(root)) = carried.get("thread").filter(|_| archive.runs.is_empty())
        {
            restore_root(archive, root, options);
        }
        if let Some(Json::Object(agents)) = carried.get("agents") {
            for (id, config) in agents {
                archive.register(id, config.as_object().cloned().unwrap_or_default());
            }
        }
        archive.runs.push(run);
    }
    *open = Open::Told {
        run: sealed.run,
        came: sealed.position + 1,
        of: sealed.of,
    };
    Ok(())
}

/// Restores the root, except for the fields that the caller sets.
fn restore_root(archive: &mut Archive, told: &Object, options: &ReadOptions) {
    let mut root = told.clone();
    for (key, said) in [
        ("thread_id", options.thread_id.as_deref()),
        ("title", options.title.as_deref()),
    ] {
        if let Some(said) = said {
            root.insert(key, said);
        }
    }
    if !root.contains_key("agents") {
        root.insert("agents", Object::new());
    }
    archive.root = root;
}
