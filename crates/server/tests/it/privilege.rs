//! What requests may not do: the least that a caller needs is all that it gets.

mod cards;
mod earlier;
mod hosts;
mod imports;
mod links;
mod request_ids;

use crate::harness::Server;
use loomline_server::auth::hash_text;

/// A tenant with a key that may do everything (`llk_all`), and one with these rights (`llk_some`).
async fn with_rights(rights: &str) -> (Server, Server) {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\n{rights}\n"
    );
    let all = Server::new(&config).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    (all, some)
}
