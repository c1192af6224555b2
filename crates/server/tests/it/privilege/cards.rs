//! Who may keep an agent's card.

use crate::harness::Server;

const CARD: &str = "/.well-known/agent-card.json";

async fn caching(config: &str) -> String {
    let card = Server::new(config).await.get(CARD).await;
    assert_eq!(card.status, 200, "{}", card.text);
    card.headers["cache-control"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_card_that_repeats_the_host_is_kept_by_no_shared_cache() {
    assert_eq!(caching("").await, "private, max-age=300");
    let public = "[server]\npublic_url = \"https://agents.example\"";
    assert_eq!(caching(public).await, "public, max-age=300");
}
