//! The log of a thread: a page of its events, and the rows that come while the page is open.

use super::event_text::{event_text, warns};
use super::frame::{ConsoleFrame, ThreadSection};
use crate::elements::paging;
use crate::json;
use crate::link::at_path;
use crate::patch::Patch;
use crate::time;
use jiff::Timestamp;
use maud::{Markup, html};
use timeline::{Event, EventType, Record, StepId};

/// Maximum number of chunks in a row.
const MAX_FOLDED: usize = 200;
/// Maximum size of an event's JSON on the page, in bytes.
const MAX_JSON: usize = 8 << 10;
/// The element with the rows.
const ROWS: &str = "events";

/// How much of the log a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventDetail {
    /// Chunks of one kind in one row.
    #[default]
    Compact,
    /// A row for each event.
    Full,
    /// The JSON of each event.
    Raw,
}

impl EventDetail {
    const ALL: [Self; 3] = [Self::Compact, Self::Full, Self::Raw];

    /// Its name in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Full => "full",
            Self::Raw => "raw",
        }
    }

    /// The detail with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|detail| detail.name() == name)
    }
}

/// Which events a page shows, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSelection {
    /// How much of each.
    pub detail: EventDetail,
    /// Only events of this type.
    pub event_type: Option<EventType>,
}

/// A row: an event, or several chunks of one kind.
#[derive(Clone, Debug)]
struct EventRow {
    first: u64,
    last: u64,
    at: Timestamp,
    event_type: EventType,
    /// The step and the type of a chunk.
    chunk: Option<(Option<StepId>, String)>,
    n_events: usize,
    /// Whether it reports a loss or a restart.
    warns: bool,
    text: String,
    /// Its JSON, shortened; of the first event.
    json: String,
}

/// The change of a table by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// The event is left out.
    LeftOut,
    /// The table has another row.
    Added,
    /// The last row has another event.
    Grown,
}

/// The events of a log as rows.
#[derive(Clone, Debug)]
pub struct EventTable {
    thread_key: String,
    selection: EventSelection,
    rows: Vec<EventRow>,
}

impl EventTable {
    /// A table without rows.
    pub fn new(thread_key: &str, selection: EventSelection) -> Self {
        Self {
            thread_key: thread_key.to_owned(),
            selection,
            rows: Vec::new(),
        }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether an event would begin a row.
    pub fn begins_row(&self, event: &Event) -> bool {
        self.is_selected(event) && !self.folds(event)
    }

    fn is_selected(&self, event: &Event) -> bool {
        let event_type = self.selection.event_type;
        event_type.is_none_or(|selected| selected == event.event_type())
    }

    /// Whether an event belongs to the last row.
    fn folds(&self, event: &Event) -> bool {
        let Some(last) = self.rows.last() else {
            return false;
        };
        self.selection.detail == EventDetail::Compact
            && last.n_events < MAX_FOLDED
            && last.chunk.is_some()
            && last.chunk == chunk_of(event)
    }

    /// Adds an event; `json` writes it as clients may see it.
    pub fn push(&mut self, record: &Record, json: impl FnOnce() -> String) -> TableChange {
        if !self.is_selected(&record.event) {
            return TableChange::LeftOut;
        }
        if self.folds(&record.event)
            && let Some(row) = self.rows.last_mut()
        {
            row.last = record.seq.0;
            row.n_events += 1;
            return TableChange::Grown;
        }
        self.rows.push(EventRow {
            first: record.seq.0,
            last: record.seq.0,
            at: record.at,
            event_type: record.event.event_type(),
            chunk: chunk_of(&record.event),
            n_events: 1,
            warns: warns(&record.event),
            text: event_text(&record.event),
            json: json::pretty_within(&json(), MAX_JSON),
        });
        TableChange::Added
    }

    /// Adds an event to an open page, and drops the rows before the last one.
    pub fn apply(&mut self, record: &Record, json: impl FnOnce() -> String) -> Option<Patch> {
        let change = self.push(record, json);
        if change == TableChange::LeftOut {
            return None;
        }
        let row = self.rows.pop()?;
        let html = self.row(&row).into_string();
        let id = row_id(row.first);
        self.rows = vec![row];
        Some(if change == TableChange::Grown {
            Patch::Put { id, html }
        } else {
            Patch::Append {
                id: ROWS.to_owned(),
                html,
            }
        })
    }

    /// The event after which a stream draws the last row again and continues.
    fn live_after(&self, last: u64) -> u64 {
        let is_open =
            |row: &&EventRow| row.chunk.is_some() && self.selection.detail == EventDetail::Compact;
        let row = self.rows.last().filter(is_open);
        row.map_or(last, |row| row.first.saturating_sub(1))
    }

    fn row(&self, row: &EventRow) -> Markup {
        let is_folded = row.n_events > 1;
        let key = self.thread_key.as_str();
        html! {
            tr id=(row_id(row.first)) data-type=(row.event_type.name()) data-warns[row.warns] {
                th scope="row" class="number" {
                    (row.first) @if is_folded { "…" (row.last) }
                }
                td class="wide" { (time::exact(row.at)) }
                td { code { (row.event_type.name()) } @if is_folded { " ×" (row.n_events) } }
                @if self.selection.detail == EventDetail::Raw {
                    td { pre tabindex="0" { (row.json) } }
                } @else if is_folded {
                    td dir="auto" { (chunk_name(row)) " " a class="quiet" href=(each_path(key, row)) { "each" } }
                } @else {
                    td {
                        span dir="auto" { @if row.warns { "⚠ " } (row.text) }
                        details class="raw-json" {
                            summary { "JSON" span class="hidden" { " of event " (row.first) } }
                            pre tabindex="0" { (row.json) }
                            a class="quiet" href=(at_path(key, row.first)) { "The thread after event " (row.first) }
                        }
                    }
                }
            }
        }
    }
}

/// The element of a row.
fn row_id(first: u64) -> String {
    format!("e-{first}")
}

/// The step and the type of a chunk that is no marker of its own.
fn chunk_of(event: &Event) -> Option<(Option<StepId>, String)> {
    let Event::ChunkEmitted {
        chunk_type,
        step_id,
        ..
    } = event
    else {
        return None;
    };
    let is_marker = timeline::chunk_type::MARKERS.contains(&chunk_type.as_str());
    (!is_marker).then(|| (step_id.clone(), chunk_type.clone()))
}

fn chunk_name(row: &EventRow) -> String {
    let name = row.chunk.as_ref().map(|(_, name)| name.as_str());
    json::visible(name.unwrap_or_default()).into_owned()
}

/// The address of the single events of a row.
fn each_path(key: &str, row: &EventRow) -> String {
    let selection = EventSelection {
        detail: EventDetail::Full,
        event_type: None,
    };
    selection.path(key, Some(("after", row.first.saturating_sub(1))))
}

impl EventSelection {
    /// The address of a page of the log.
    fn path(self, key: &str, cursor: Option<(&str, u64)>) -> String {
        let mut path = ThreadSection::Events.path(key);
        path.push_str("?view=");
        path.push_str(self.detail.name());
        if let Some(event_type) = self.event_type {
            path.push_str("&type=");
            path.push_str(event_type.name());
        }
        match cursor {
            Some((name, seq)) => format!("{path}&{name}={seq}"),
            None => path,
        }
    }
}

/// The page of a thread's log.
#[derive(Debug)]
pub struct EventsPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub thread_key: &'a str,
    /// The rows.
    pub table: &'a EventTable,
    /// The first and the last event that were read for the page.
    pub range: (u64, u64),
    /// The last event of the thread.
    pub tail: u64,
    /// The identity of the thread, which ids of its stream have.
    pub incarnation: &'a str,
}

impl EventsPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            h2 { "Events" }
            (self.tools())
            @if self.table.rows.is_empty() { (self.empty()) }
            (self.rows())
            (self.paging())
        })
    }

    fn is_live(&self) -> bool {
        self.range.1 >= self.tail
    }

    fn tools(&self) -> Markup {
        let selection = self.table.selection;
        html! {
            div class="tools" {
                nav class="tabs" aria-label="View" {
                    ul {
                        @for detail in EventDetail::ALL {
                            li {
                                a href=(EventSelection { detail, ..selection }.path(self.thread_key, None))
                                    aria-current=[(detail == selection.detail).then_some("true")] { (detail.name()) }
                            }
                        }
                    }
                }
                form class="filters" method="get" action=(ThreadSection::Events.path(self.thread_key)) {
                    input type="hidden" name="view" value=(selection.detail.name());
                    label { "Type"
                        select name="type" {
                            option value="" { "all" }
                            @for event_type in EventType::ALL {
                                option value=(event_type.name()) selected[selection.event_type == Some(event_type)] { (event_type.name()) }
                            }
                        }
                    }
                    button type="submit" { "Show" }
                }
                button type="button" id="pause" hidden { "Pause" }
            }
        }
    }

    fn empty(&self) -> Markup {
        let selection = self.table.selection;
        let all = EventSelection {
            event_type: None,
            ..selection
        };
        html! {
            section class="empty" id="no-events" {
                @match selection.event_type {
                    Some(event_type) => p {
                        "No event " code { (event_type.name()) } " among the events " (self.range.0) " to " (self.range.1) ". "
                        a href=(all.path(self.thread_key, None)) { "Show all types" }
                    },
                    None => p {
                        "There are no events here. "
                        a href=(all.path(self.thread_key, None)) { "Show the newest events" }
                    },
                }
            }
        }
    }

    fn rows(&self) -> Markup {
        let selection = self.table.selection;
        let after = format!(
            "{}.{}",
            self.table.live_after(self.range.1),
            self.incarnation
        );
        let live = self.is_live().then_some(after);
        html! {
            div class="scroll" tabindex="0" role="region" aria-label="Events" {
                table class="events" data-view=(selection.detail.name()) {
                    thead {
                        tr {
                            th scope="col" class="number" { "Seq" }
                            th scope="col" class="wide" { "At (UTC)" }
                            th scope="col" { "Type" }
                            th scope="col" { "Content" }
                        }
                    }
                    tbody id=(ROWS) data-thread=(self.thread_key) data-after=[live] data-view=(selection.detail.name())
                        data-type=(selection.event_type.map(EventType::name).unwrap_or_default())
                    {
                        @for row in &self.table.rows { (self.table.row(row)) }
                    }
                }
            }
        }
    }

    fn paging(&self) -> Markup {
        let selection = self.table.selection;
        let (first, last) = self.range;
        let path = |cursor| selection.path(self.thread_key, cursor);
        html! {
            (paging(&html! {
                @if first > 1 {
                    a class="button" href=(path(Some(("after", 0)))) { "First events" }
                    a class="button" href=(path(Some(("before", first)))) rel="prev" { "Older events" }
                }
                @if !self.is_live() {
                    a class="button" href=(path(Some(("after", last)))) rel="next" { "Newer events" }
                    a class="button" href=(path(None)) { "Newest events" }
                }
                span class="quiet" { "events " (first) " to " (last) " of " (self.tail) }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use timeline::Seq;

    fn record(seq: u64, event: &Value) -> Record {
        Record {
            seq: Seq(seq),
            at: Timestamp::UNIX_EPOCH,
            event: Event::decode(&event.to_string()).unwrap(),
        }
    }

    fn chunk(seq: u64, name: &str, delta: &str) -> Record {
        let data = json!({"id": "t0-0", "delta": delta});
        let event = json!({"type": "chunk.emitted", "chunkType": name, "contextId": "c", "executionId": "e", "stepId": "s", "data": data});
        record(seq, &event)
    }

    fn table(detail: EventDetail, event_type: Option<EventType>) -> EventTable {
        let selection = EventSelection { detail, event_type };
        let mut table = EventTable::new("k", selection);
        for n in 1..=3 {
            table.push(&chunk(n, "text-delta", "<b>"), || "{}".to_owned());
        }
        table.push(&chunk(4, "data-step-reset", ""), || "{}".to_owned());
        table.push(&chunk(5, "text-delta", "a"), || "{}".to_owned());
        table
    }

    fn seqs(table: &EventTable) -> Vec<(u64, u64)> {
        table.rows.iter().map(|row| (row.first, row.last)).collect()
    }

    #[test]
    fn chunks_of_one_kind_are_one_row_of_the_compact_view() {
        let compact = table(EventDetail::Compact, None);
        assert_eq!(seqs(&compact), [(1, 3), (4, 4), (5, 5)]);
        let html = compact.row(&compact.rows[0]).into_string();
        assert!(html.contains("1…3") && html.contains("×3"), "{html}");
        let html = compact.row(&compact.rows[1]).into_string();
        assert!(
            html.contains("⚠ data-step-reset · the attempt is void"),
            "{html}"
        );
        assert!(html.contains(" data-warns"), "{html}");
        assert_eq!(table(EventDetail::Full, None).n_rows(), 5);
        assert_eq!(
            table(EventDetail::Raw, Some(EventType::ItemCreated)).n_rows(),
            0
        );
    }

    #[test]
    fn a_live_row_grows_with_its_chunks() {
        let mut table = EventTable::new("k", EventSelection::default());
        let mut apply = |n, name| table.apply(&chunk(n, name, "x"), || "{}".to_owned());
        assert!(matches!(apply(7, "text-delta"), Some(Patch::Append { .. })));
        let grown = apply(8, "text-delta");
        assert!(matches!(grown, Some(Patch::Put { id, .. }) if id == "e-7"));
        assert!(matches!(apply(9, "text-end"), Some(Patch::Append { .. })));
        assert_eq!(table.live_after(9), 8);
    }

    #[test]
    fn a_text_with_a_warning_sign_is_no_warning() {
        let mut table = EventTable::new("k", EventSelection::default());
        table.push(&chunk(1, "text-delta", "⚠ lost"), || "{}".to_owned());
        let html = table.row(&table.rows[0]).into_string();
        assert!(
            html.contains("⚠ lost") && !html.contains("data-warns"),
            "{html}"
        );
    }

    #[test]
    fn a_text_of_others_in_a_row_is_only_text() {
        let mut table = EventTable::new("k", EventSelection::default());
        let json = || "{\"<script>\":\"\u{202e}\"}".to_owned();
        table.push(&chunk(1, "text-delta", "<script>\u{202e}"), json);
        let html = table.row(&table.rows[0]).into_string();
        assert!(
            !html.contains("<script>") && !html.contains('\u{202e}'),
            "{html}"
        );
    }
}
