//! Deletion of threads with all their data.

use super::ThreadRef;
use crate::state::Api;
use runtime::RuntimeError;

/// Deletes a thread with its data, in its turn. Refused while the thread runs or has forks. The caller
/// must not hold a turn.
pub(crate) async fn delete_thread(api: &Api, thread: &ThreadRef) -> Result<(), RuntimeError> {
    let (own, thread) = (api.clone(), thread.clone());
    let deleted = api.runtime(thread.tenant()).run_to_completion(async move {
        let _turn = own.turns().of(thread.id()).await;
        delete_thread_locked(&own, &thread).await
    });
    deleted.await
}

/// Deletes a thread with its data, in its turn, and stops what runs on it. Refused while it has forks;
/// then a running execution continues.
pub(crate) async fn delete_thread_stopping(
    api: &Api,
    thread: &ThreadRef,
) -> Result<(), RuntimeError> {
    let (own, thread) = (api.clone(), thread.clone());
    let deleted = api.runtime(thread.tenant()).run_to_completion(async move {
        let _turn = own.turns().of(thread.id()).await;
        thread.delete_stopping().await?;
        own.aitp_states(thread.tenant()).forget(thread.id());
        Ok(())
    });
    deleted.await
}

/// Deletes a thread with its data. The caller holds the thread's turn.
pub(crate) async fn delete_thread_locked(
    api: &Api,
    thread: &ThreadRef,
) -> Result<(), RuntimeError> {
    thread.delete().await?;
    api.aitp_states(thread.tenant()).forget(thread.id());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::auth::Caller;
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
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        let (api, tenant) = (Api::new(app, CancellationToken::new()), TenantId::from("t"));
        let runtime = api.runtime(&tenant);
        let caller = Caller::local("t");
        for stops in [false, true] {
            let new = NewThreadRequest::default();
            let (row, _) = runtime.get_or_create(&tenant, new).await.unwrap();
            let thread = ThreadRef::authorise(runtime, &caller, row).unwrap();
            let turn = api.turns().of(thread.id()).await;
            let (own, of) = (api.clone(), thread.clone());
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
                    is_limited: true,
                };
                runtime.objects().put(&tenant, count).await.unwrap();
            }
            thread.reread().await.unwrap();
            drop(turn);
            deletion.join_next().await.unwrap().unwrap().unwrap();
            let gone = thread.reread().await;
            assert!(gone.is_err());
        }
    }
}
