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
mod native;
mod piece;
mod repeated;
mod responses;
pub(crate) mod runs;
pub(crate) mod threads;
mod threads_api;
mod tree;
mod view;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::protocol::Protocol;
use crate::state::Api;
use crate::threads::key_of;
use runtime::{RuntimeError, ThreadRow};

/// The protocols that the server speaks.
pub(crate) const PROTOCOLS: [&Protocol; 9] = [
    &health::PROTOCOL,
    &native::PROTOCOL,
    &chat::PROTOCOL,
    &ag_ui::PROTOCOL,
    &responses::PROTOCOL,
    &threads_api::PROTOCOL,
    &a2a::PROTOCOL,
    &mcp::PROTOCOL,
    &langgraph::PROTOCOL,
];

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
