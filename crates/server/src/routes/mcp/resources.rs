//! Threads as resources.

use super::handler::Handler;
use super::tools::thread;
use crate::error::ApiError;
use crate::routes::view::MessageView;
use crate::threads::{ThreadRef, key_of, listing};
use futures_util::stream::{self, SelectAll, StreamExt as _};
use interop::ag_ui::was_cut_off;
use interop::archive::Format;
use interop::convert::SourceForm;
use interop::ids::THREAD;
use interop::mcp::{Resource, View, to_text};
use rmcp::model::{
    self, CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    ResourceContents, ResourceTemplate, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::SubscriptionContext;
use runtime::{Filter, Logged, RuntimeError, StoreError, ThreadRow, ThreadRows, Until};
use serde_json::json;
use std::collections::BTreeSet;
use timeline::Event;

/// Number of resources on a page.
const PAGE: usize = 50;
/// Maximum number of resources of a subscription.
const MAX_WATCHED: usize = 64;
/// Maximum number of events per update notification.
const BATCH: usize = 256;

/// A watched thread.
pub(super) struct Watched {
    /// The URI that the client used.
    uri: String,
    thread: ThreadRef,
}

/// A page of the threads that the caller may see, as documents.
pub(super) async fn list(
    handler: &Handler,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ApiError> {
    let page = ThreadRows {
        after: cursor.as_deref().map(listing::read_cursor).transpose()?,
        limit: PAGE,
        ..ThreadRows::default()
    };
    let (rows, next) = listing::visible(&handler.api, &handler.caller, page).await?;
    let mut listed = ListResourcesResult::with_all_items(rows.iter().map(resource).collect());
    listed.next_cursor = next;
    (listed.ttl_ms, listed.cache_scope) = (Some(0), Some(CacheScope::Private));
    Ok(listed)
}

fn resource(row: &ThreadRow) -> model::Resource {
    let key = key_of(row);
    let changed = row.thread.updated_at.unwrap_or(row.thread.created_at);
    let mut annotations = model::Annotations::default();
    annotations.last_modified = Some(changed.to_string());
    let resource = model::Resource::new(Resource::document(key).uri(), key)
        .with_description(description(View::Document))
        .with_mime_type(View::Document.media_type())
        .with_annotations(annotations);
    match &row.thread.title {
        Some(title) => resource.with_title(title),
        None => resource,
    }
}

const fn description(view: View) -> &'static str {
    match view {
        View::Document => "The conversation as a ThreadProtocol document: complete cycles only.",
        View::Messages => "The messages of the conversation, as the native API has them.",
        View::Text => "What was said, as plain text.",
    }
}

/// How threads can be read.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let templates = View::ALL.into_iter().map(|view| {
        let name = match view {
            View::Document => "thread",
            View::Messages => "thread-messages",
            View::Text => "thread-text",
        };
        ResourceTemplate::new(view.template(), name)
            .with_description(description(view))
            .with_mime_type(view.media_type())
    });
    ListResourceTemplatesResult::with_all_items(templates.collect())
}

/// Reads a thread. Costs time proportional to the thread.
pub(super) async fn read(handler: &Handler, uri: &str) -> Result<ReadResourceResult, ApiError> {
    let (thread, view) = found(handler, uri).await?;
    let app = handler.api.app();
    let text = match view {
        View::Document => {
            let form = SourceForm::Of(Format::Thread);
            app.export(thread.tenant(), thread.key(), form).await?.text
        }
        View::Messages => {
            let mut read = thread.transcript(Filter::Facts).await?;
            if was_cut_off(&read) {
                read = thread.transcript(Filter::All).await?;
            }
            let seq = read.seq.0;
            let messages: Vec<MessageView> = read
                .entries
                .into_iter()
                .filter_map(|entry| MessageView::of_entry(entry, false))
                .collect();
            json!({"messages": messages, "seq": seq}).to_string()
        }
        View::Text => {
            let read = thread.transcript(Filter::Facts).await?;
            encoded(move || to_text(&read)).await?
        }
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(view.media_type());
    let mut read = ReadResourceResult::new(vec![contents]);
    (read.ttl_ms, read.cache_scope) = (Some(0), Some(CacheScope::Private));
    Ok(read)
}

/// The thread and the view that a URI names.
async fn found(handler: &Handler, uri: &str) -> Result<(ThreadRef, View), ApiError> {
    let Some(resource) = Resource::read(uri) else {
        return Err(RuntimeError::Store(StoreError::NotFound).into());
    };
    Ok((thread(handler, &resource.key).await?, resource.view))
}

async fn encoded(encode: impl FnOnce() -> String + Send + 'static) -> Result<String, ApiError> {
    let encoded = tokio::task::spawn_blocking(encode).await;
    encoded.map_err(|error| ApiError::Export(error.into()))
}

/// The existing threads among the first `MAX_WATCHED` URIs of a subscription.
pub(super) async fn watched(
    handler: &Handler,
    requested: &SubscriptionFilter,
) -> Result<Vec<Watched>, ApiError> {
    let uris = requested.resource_subscriptions.iter().flatten();
    let named = uris.filter_map(|uri| Some((uri, Resource::read(uri)?.key)));
    let mut watched = Vec::new();
    for (uri, key) in named.take(MAX_WATCHED) {
        let found = ThreadRef::find(&handler.api, &handler.caller, THREAD, &key).await?;
        watched.extend(found.map(|thread| Watched {
            uri: uri.clone(),
            thread,
        }));
    }
    Ok(watched)
}

/// The acknowledged filter: the URIs of the watched threads.
pub(super) fn accepted(watched: &[Watched]) -> SubscriptionFilter {
    let uris = watched.iter().map(|watched| watched.uri.clone());
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions = Some(uris.collect());
    accepted
}

/// Notifies the client of each change of the watched threads. Ends when the client disconnects, the
/// server stops or the key becomes invalid. If a thread can't be followed, because it was deleted, that
/// is its last change.
pub(super) async fn listen(
    handler: &Handler,
    subscription: &SubscriptionContext,
) -> Result<(), ApiError> {
    let open = handler.api.open_stream(&handler.caller)?;
    let mut streams = SelectAll::new();
    for Watched { uri, thread } in handler.watched.iter() {
        let follow = thread.follow(thread.row().tail, Until::Forever);
        let follow = match follow.await {
            Ok(follow) => follow,
            Err(RuntimeError::Store(error)) => stream::iter([Err(error)]).boxed(),
            Err(error) => return Err(error.into()),
        };
        streams.push(follow.map(move |logged| (uri.clone(), logged)));
    }
    let mut batches = streams.ready_chunks(BATCH);
    loop {
        let batch = tokio::select! {
            biased;
            why = open.unwanted() => return why.map_or(Ok(()), Err),
            () = subscription.cancelled() => return Ok(()),
            Some(batch) = batches.next() => batch,
        };
        let mut changed = BTreeSet::new();
        for (uri, logged) in batch {
            // What is only shown while it is said is no change of what is read.
            let is_chunk = |it: &Logged| matches!(it.record.event, Event::ChunkEmitted { .. });
            if !logged.is_ok_and(|logged| is_chunk(&logged)) {
                changed.insert(uri);
            }
        }
        for uri in changed {
            let changed = ResourceUpdatedNotificationParam::new(uri);
            let changed = ResourceUpdatedNotification::new(changed);
            let changed = ServerNotification::ResourceUpdatedNotification(changed);
            if subscription.sink().send(changed).await.is_err() {
                return Ok(());
            }
        }
    }
}
