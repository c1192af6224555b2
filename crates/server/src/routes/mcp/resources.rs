//! Threads as resources.

use super::handler::Handler;
use super::tools::thread;
use crate::error::ApiError;
use crate::protocol::key_of;
use crate::routes::listing;
use crate::routes::view::MessageView;
use futures_util::stream::{SelectAll, StreamExt as _};
use interop::mcp::{Resource, View, to_text};
use rmcp::model::{
    self, CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    ResourceContents, ResourceTemplate, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::SubscriptionContext;
use runtime::{Filter, Page, RuntimeError, StoreError, ThreadRow, Until};
use serde_json::json;
use std::collections::BTreeSet;
use timeline::Event;

/// How many resources are in a page.
const PAGE: usize = 50;
/// How many resources one subscription may watch.
const MAX_WATCHED: usize = 64;
/// How many events are looked at before who watches is told.
const BATCH: usize = 256;

/// A page of the threads that the caller may see, as documents.
pub(super) async fn list(
    handler: &Handler,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ApiError> {
    let page = Page {
        after: cursor.as_deref().map(listing::read_cursor).transpose()?,
        prefix: None,
        limit: PAGE,
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

/// Reads a thread. Costs what the thread has.
pub(super) async fn read(handler: &Handler, uri: &str) -> Result<ReadResourceResult, ApiError> {
    let (row, view) = found(handler, uri).await?;
    let (api, tenant, key) = (&handler.api, &handler.caller.tenant, key_of(&row));
    let text = match view {
        View::Document => {
            let document = api.app().converted(tenant, key).await?.value;
            encoded(move || document.encode()).await?
        }
        View::Messages => {
            let read = api.runtime().transcript(tenant, key, Filter::Facts).await?;
            let seq = read.seq.0;
            let messages: Vec<MessageView> = read.entries.into_iter().map(Into::into).collect();
            json!({"messages": messages, "seq": seq}).to_string()
        }
        View::Text => {
            let read = api.runtime().transcript(tenant, key, Filter::Facts).await?;
            encoded(move || to_text(&read)).await?
        }
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(view.media_type());
    let mut read = ReadResourceResult::new(vec![contents]);
    (read.ttl_ms, read.cache_scope) = (Some(0), Some(CacheScope::Private));
    Ok(read)
}

/// The thread that a URI names, and how it is to be read.
async fn found(handler: &Handler, uri: &str) -> Result<(ThreadRow, View), ApiError> {
    let Some(resource) = Resource::read(uri) else {
        return Err(RuntimeError::Store(StoreError::NotFound).into());
    };
    Ok((thread(handler, &resource.key).await?, resource.view))
}

async fn encoded(encode: impl FnOnce() -> String + Send + 'static) -> Result<String, ApiError> {
    let encoded = tokio::task::spawn_blocking(encode).await;
    encoded.map_err(|error| ApiError::Export(error.into()))
}

/// What of a subscription is watched: threads, so many at the most.
pub(super) fn watched(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let uris = uris.filter(|uri| Resource::read(uri).is_some());
    let mut watched = SubscriptionFilter::new();
    watched.resource_subscriptions = Some(uris.take(MAX_WATCHED).cloned().collect());
    watched
}

/// Tells of each change of the threads that are watched, until the client leaves, the server stops or the key opens
/// nothing any more.
pub(super) async fn listen(
    handler: &Handler,
    subscription: &SubscriptionContext,
) -> Result<(), ApiError> {
    let open = handler.api.open_stream(&handler.caller)?;
    let mut streams = SelectAll::new();
    for uri in subscription
        .accepted()
        .resource_subscriptions
        .iter()
        .flatten()
    {
        let (row, _) = found(handler, uri).await?;
        let (runtime, tenant) = (handler.api.runtime(), &handler.caller.tenant);
        let follow = runtime.follow(tenant, key_of(&row), row.tail, Until::Forever);
        let uri = uri.clone();
        streams.push(follow.await?.map(move |logged| (uri.clone(), logged)));
    }
    let mut batches = streams.ready_chunks(BATCH);
    loop {
        let batch = tokio::select! {
            biased;
            why = open.unwanted() => return why.map_or(Ok(()), Err),
            () = subscription.cancelled() => return Ok(()),
            batch = batches.next() => batch,
        };
        let Some(batch) = batch else {
            subscription.cancelled().await;
            return Ok(());
        };
        let mut changed = BTreeSet::new();
        for (uri, logged) in batch {
            // What is only shown while it is said is no change of what is read.
            if !matches!(logged?.record.event, Event::ChunkEmitted { .. }) {
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
