//! Which session a run belongs to (UAP §3.4).

use super::*;

#[tokio::test]
async fn a_session_id_is_made_once_an_agent_and_is_in_the_saved_and_the_returned_state() {
    let checkpoints = memory();
    let agent = agent(kept(adding(), &checkpoints));
    let made = agent.session_id().unwrap().to_owned();
    assert_eq!(uuid::Uuid::parse_str(&made).unwrap().get_version_num(), 4);
    let first = agent.ask("go", AgentState::initial()).await.unwrap();
    let second = agent.ask("go", AgentState::initial()).await.unwrap();
    assert_eq!(
        [session_of(&first.state), session_of(&second.state)],
        [&made; 2]
    );
    assert_eq!(session_of(&load(&checkpoints, &made).await), made);
    assert_eq!(checkpoints.store().list().await.unwrap(), [made]);
}

#[tokio::test]
async fn a_session_id_of_the_users_own_is_taken_as_it_is() {
    let checkpoints = memory();
    let mut options = kept(adding(), &checkpoints);
    options.session_id = Some("user-123/task".to_owned());
    let state = generate(options).await.state;
    assert_eq!(session_of(&state), "user-123/task");
    assert_eq!(load(&checkpoints, "user-123/task").await, state);
}

#[tokio::test]
async fn metadata_names_the_agent_that_saved() {
    let checkpoints = memory();
    let agent = agent(kept(adding(), &checkpoints));
    agent.ask("go", AgentState::initial()).await.unwrap();
    checkpoints.flush().await;
    let session = agent.session_id().unwrap();
    let metadata = checkpoints
        .store()
        .load_metadata(session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (metadata.agent_id.as_deref(), metadata.step),
        (Some(agent.id()), 4)
    );
}

#[tokio::test]
async fn a_restored_state_keeps_its_session_unless_the_agent_was_given_one() {
    let checkpoints = memory();
    let old = generate(kept(adding(), &checkpoints)).await.state;
    let restored = load(&checkpoints, session_of(&old)).await;

    let next = agent(kept(scripted(vec![ScriptTurn::text("hi")]), &checkpoints));
    let resumed = next.ask("go on", restored.clone()).await.unwrap().state;
    assert_eq!(session_of(&resumed), session_of(&old));
    assert_eq!(load(&checkpoints, session_of(&old)).await, resumed);

    let mut options = kept(scripted(vec![ScriptTurn::text("hi")]), &checkpoints);
    options.session_id = Some("branch".to_owned());
    let branched = agent(options).ask("go on", restored).await.unwrap().state;
    assert_eq!(session_of(&branched), "branch");
    assert_eq!(
        load(&checkpoints, session_of(&old)).await,
        resumed,
        "untouched"
    );
}
