//! The routes, one module a noun.

mod a2a;
pub(crate) mod ag_ui;
pub(crate) mod agents;
mod aitp;
pub(crate) mod answers;
pub(crate) mod branches;
pub(crate) mod chat;
pub(crate) mod documents;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod langgraph;
mod listing;
pub(crate) mod mcp;
pub(crate) mod messages;
mod piece;
mod query;
mod repeated;
mod responses;
pub(crate) mod runs;
pub(crate) mod threads;
mod threads_api;
mod tree;
mod view;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::openapi::Document;
use crate::protocol::key_of;
use crate::state::Api;
use axum::middleware::from_fn;
use runtime::{RuntimeError, ThreadRow};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Deletes a thread and what lies beside it, in its turn; refused while it runs or has forks. Not to be
/// asked by who has the thread's turn, or another's.
async fn delete_thread(api: &Api, row: &ThreadRow) -> Result<(), RuntimeError> {
    let (own, row) = (api.clone(), row.clone());
    let deleted = api.runtime().owned(async move {
        let _turn = own.turns().of(&row.thread.id).await;
        delete_in_turn(&own, &row).await
    });
    deleted.await
}

/// Deletes a thread under its lock and stops its run. Refused while the thread has forks; the run then continues.
async fn delete_thread_stopping(api: &Api, row: &ThreadRow) -> Result<(), RuntimeError> {
    let (own, row) = (api.clone(), row.clone());
    let deleted = api.runtime().owned(async move {
        let _turn = own.turns().of(&row.thread.id).await;
        let runtime = own.runtime();
        let deleted = runtime.delete_stopping(&row.tenant, key_of(&row));
        deleted.await?;
        own.desks().forget(&row.thread.id);
        Ok(())
    });
    deleted.await
}

/// Deletes a thread and what lies beside it. Who asks has the thread's turn.
async fn delete_in_turn(api: &Api, row: &ThreadRow) -> Result<(), RuntimeError> {
    api.runtime().delete(&row.tenant, key_of(row)).await?;
    api.desks().forget(&row.thread.id);
    Ok(())
}

/// What anyone may ask.
pub(crate) fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::index))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::openapi))
        .merge(a2a::open())
        .merge(langgraph::open())
}

/// What needs a key.
pub(crate) fn guarded() -> OpenApiRouter<Api> {
    let v1 = OpenApiRouter::new()
        .routes(routes!(threads::list, threads::create))
        .routes(routes!(threads::read, threads::delete))
        .routes(routes!(threads::fork))
        .routes(routes!(branches::list))
        .routes(routes!(threads::close))
        .routes(routes!(threads::reopen))
        .routes(routes!(threads::cancel))
        .routes(routes!(messages::list, messages::post))
        .routes(routes!(answers::pending))
        .routes(routes!(answers::post))
        .routes(routes!(runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::cancel))
        .routes(routes!(events::follow))
        .routes(routes!(documents::export))
        .routes(routes!(documents::import))
        .routes(routes!(agents::list))
        .merge(aitp::routes())
        .route_layer(from_fn(query::declared));
    OpenApiRouter::new()
        .nest("/api/v1", v1)
        .merge(threads_api::routes())
        .merge(responses::routes())
        .merge(a2a::routes())
        .merge(mcp::routes())
        .merge(langgraph::routes())
        .routes(routes!(chat::post))
        .routes(routes!(chat::resume))
        .routes(routes!(chat::messages))
        .routes(routes!(chat::stop))
        .routes(routes!(ag_ui::run_default))
        .routes(routes!(ag_ui::run_agent))
        .routes(routes!(ag_ui::messages))
        .routes(routes!(health::metrics))
}

/// A key that a thread may be made with.
fn check_key(key: &str, pointer: &str) -> Result<(), ApiError> {
    crate::check_key(key).map_err(|invalid| ApiError::field(pointer, invalid.to_string()))
}

/// Checks a key that the body names. Only a caller with access to all threads may leave the key out, because the
/// server then makes one up.
fn check_named_key(caller: &Caller, key: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    match key {
        Some(key) => {
            check_key(key, pointer)?;
            caller.check(key)
        }
        None if caller.rights.threads.is_some() => Err(ApiError::ForbiddenThread),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::config::Config;
    use jiff::Timestamp;
    use runtime::objects::NewObject;
    use runtime::{NewThreadRequest, TenantId};
    use stores::OpenMode;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn a_thread_is_deleted_in_its_turn() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::parse("", &|_| None).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite).unwrap();
        let (api, tenant) = (Api::new(app, CancellationToken::new()), TenantId::from("t"));
        let runtime = api.runtime();
        for stops in [false, true] {
            let new = NewThreadRequest::default();
            let (row, _) = runtime.get_or_create(&tenant, new).await.unwrap();
            let turn = api.turns().of(&row.thread.id).await;
            let (own, of) = (api.clone(), row.clone());
            let mut deletion = JoinSet::new();
            deletion.spawn(async move {
                if stops {
                    delete_thread_stopping(&own, &of).await
                } else {
                    delete_thread(&own, &of).await
                }
            });
            // Who does not wait for the turn comes between these.
            for n in 0..100 {
                let count = NewObject {
                    kind: "kind".to_owned(),
                    id: n.to_string(),
                    created_at: Timestamp::now(),
                    json: "1".to_owned(),
                    content: None,
                    thread: None,
                };
                runtime.objects().put(&tenant, count).await.unwrap();
            }
            runtime.find_by_id(&tenant, &row.thread.id).await.unwrap();
            drop(turn);
            deletion.join_next().await.unwrap().unwrap().unwrap();
            let gone = runtime.find_by_id(&tenant, &row.thread.id).await;
            assert!(gone.is_err());
        }
    }
}
