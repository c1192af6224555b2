//! A subscriber that keeps the spans of the `GenAI` conventions.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The spans of this thread from now on, in the order they began.
pub(crate) struct Recorder {
    spans: Arc<Mutex<Vec<Recorded>>>,
    _guard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    id: u64,
    parent: Option<u64>,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) is_closed: bool,
}

impl Recorded {
    pub(crate) fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }

    pub(crate) fn name(&self) -> &str {
        self.get("otel.name").unwrap()
    }
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let spans = Arc::default();
        let layer = Keep {
            spans: Arc::clone(&spans),
        };
        let subscriber = tracing_subscriber::registry().with(layer);
        Self {
            spans,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    pub(crate) fn spans(&self) -> Vec<Recorded> {
        self.spans.lock().unwrap().clone()
    }

    pub(crate) fn named(&self, name: &str) -> Recorded {
        let spans = self.spans();
        let mut named = spans.into_iter().filter(|span| span.name() == name);
        let span = named.next().unwrap();
        assert!(named.next().is_none(), "one span is named {name}");
        span
    }

    /// The names, each indented below its parent.
    pub(crate) fn tree(&self) -> Vec<String> {
        let spans = self.spans();
        let parent = |span: &Recorded| spans.iter().find(|it| Some(it.id) == span.parent);
        let depth = |span| std::iter::successors(parent(span), |it| parent(it)).count();
        let line = |span| "  ".repeat(depth(span)) + Recorded::name(span);
        spans.iter().map(line).collect()
    }
}

struct Keep {
    spans: Arc<Mutex<Vec<Recorded>>>,
}

impl Keep {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Recorded)) {
        let mut spans = self.spans.lock().unwrap();
        // The registry gives the id of a closed span to another.
        if let Some(span) = spans.iter_mut().rfind(|it| it.id == id.into_u64()) {
            change(span);
        }
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Keep {
    // Asked each time, for other threads of the process may have another subscriber, or none.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == "gen_ai"
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut span = Recorded {
            id: id.into_u64(),
            parent: context
                .span(id)
                .and_then(|it| it.parent())
                .map(|it| it.id().into_u64()),
            ..Recorded::default()
        };
        attributes.record(&mut Fields(&mut span.fields));
        self.spans.lock().unwrap().push(span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |span| {
            assert!(!span.is_closed);
            values.record(&mut Fields(&mut span.fields));
        });
    }

    // There should be none; one is taken for fields of its span, so that a test sees it.
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if let Some(span) = context.event_span(event) {
            self.change(&span.id(), |span| {
                event.record(&mut Fields(&mut span.fields));
            });
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |span| span.is_closed = true);
    }
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}
