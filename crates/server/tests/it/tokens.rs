//! Tokens of an identity provider (JWT).

use crate::harness::{Answer, Server};
use aws_lc_rs::signature::Ed25519KeyPair;
use axum::body::Body;
use axum::routing::get;
use http_body_util::BodyExt as _;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use loomline_server::{App, Config, OpenError, OpenMode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

/// Who issues tokens, and for whom.
const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "loomline";

/// A key that signs.
pub(crate) struct Signer {
    id: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    pub(crate) fn new(id: &'static str, algorithm: Algorithm) -> Self {
        let key = if algorithm == Algorithm::EdDSA {
            let pair = Ed25519KeyPair::generate().unwrap();
            EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref())
        } else {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
            EncodingKey::from_ec_der(&pair.serialize_der())
        };
        Self { id, algorithm, key }
    }

    fn jwk(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = self.id.into();
        jwk
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        encode(&header, claims, &self.key).unwrap()
    }
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// What a token says that may do everything for the tenant `a`, but for what `other` says.
pub(crate) fn claims(other: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now() + 600, "tenant": "a",
        "scope": "openid read write delete",
    });
    let Value::Object(other) = other else {
        panic!("{other}")
    };
    for (name, value) in other {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(&name);
        } else {
            claims[name] = value;
        }
    }
    claims
}

fn set(signers: &[&Signer]) -> String {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// A configuration with two tenants that takes tokens.
fn config(keys: &str) -> String {
    let key = loomline_server::auth::hash_text("llk_a");
    format!(
        "[auth.jwt]\nissuer = \"{ISSUER}\"\naudience = [\"{AUDIENCE}\"]\nleeway_s = 0\n{keys}\n\
         [tenants.a]\nkey_hashes = [\"{key}\"]\n[tenants.b]\n"
    )
}

pub(crate) fn inline(signers: &[&Signer]) -> String {
    config(&format!("jwks = '{}'", set(signers)))
}

/// Lists the threads with a token.
async fn list(server: &Server, token: &str) -> Answer {
    let request = server
        .request("GET", "/api/v1/threads")
        .header("authorization", format!("Bearer {token}"));
    server.send(request.body(Body::empty()).unwrap()).await
}

async fn post(server: &Server, token: &str, path: &str, body: Value) -> Answer {
    let request = server
        .request("POST", path)
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"));
    server
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

/// Why a token is refused.
fn reason(answer: &Answer) -> String {
    assert_eq!(answer.error(), (401, "invalid_token".into(), None));
    let challenge = answer.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    answer.json()["error"]["details"]["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_token_opens_its_tenant_and_no_other_beside_the_keys() {
    let (ec, ed) = (
        Signer::new("ec", Algorithm::ES256),
        Signer::new("ed", Algorithm::EdDSA),
    );
    let server = Server::new(&inline(&[&ec, &ed])).await;
    server.with_key("llk_a").say("t", "by key").await;
    for signer in [&ec, &ed] {
        let own = list(&server, &signer.sign(&claims(json!({})))).await;
        assert_eq!(own.status, 200, "{}", own.text);
        assert_eq!(own.json()["threads"][0]["key"], "t");
        let other = list(&server, &signer.sign(&claims(json!({"tenant": "b"})))).await;
        assert_eq!(other.json()["threads"], json!([]));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_told_by_its_reason() {
    let signer = Signer::new("k", Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    for (other, expected) in [
        (json!({"exp": now() - 10}), "expired"),
        (json!({"exp": null}), "claim"),
        (json!({"exp": "soon"}), "claim"),
        (json!({"nbf": now() + 600}), "not_yet_valid"),
        (json!({"iss": "https://other.example"}), "issuer"),
        (json!({"iss": [ISSUER, "https://other.example"]}), "issuer"),
        (json!({"iss": null}), "claim"),
        (json!({"aud": "other"}), "audience"),
        (json!({"aud": null}), "claim"),
        (json!({"sub": null}), "claim"),
        (json!({"sub": "a\nb"}), "claim"),
        (json!({"tenant": null}), "claim"),
        (json!({"tenant": 1}), "claim"),
        (json!({"tenant": "none"}), "tenant"),
        (json!({"threads": "support-*"}), "claim"),
        (json!({"threads": ["a*b"]}), "claim"),
        (json!({"actors": [1]}), "claim"),
        (json!({"scope": {"read": true}}), "claim"),
    ] {
        let answer = list(&server, &signer.sign(&claims(other.clone()))).await;
        assert_eq!(reason(&answer), expected, "{other}");
    }
    // One among several is enough.
    let several = claims(json!({"aud": ["other", AUDIENCE]}));
    assert_eq!(list(&server, &signer.sign(&several)).await.status, 200);
}

/// A token with this header and no signature that counts.
fn forged(header: &Value, claims: &Value) -> String {
    let signed = encode(
        &Header::new(Algorithm::HS256),
        claims,
        &EncodingKey::from_secret(b"x"),
    )
    .unwrap();
    let mut parts = signed.split('.');
    let (_, payload, signature) = (parts.next(), parts.next().unwrap(), parts.next().unwrap());
    // Any text in base64 is made of what the library encodes.
    let header = encode(
        &Header::new(Algorithm::HS256),
        header,
        &EncodingKey::from_secret(b"x"),
    )
    .unwrap();
    let header = header.split('.').nth(1).unwrap().to_owned();
    format!("{header}.{payload}.{signature}")
}

#[tokio::test]
async fn no_algorithm_and_no_key_is_taken_for_another() {
    let signer = Signer::new("k", Algorithm::ES256);
    let stranger = Signer::new("k", Algorithm::ES256);
    let unknown = Signer::new("other", Algorithm::ES256);
    let other_kind = Signer::new("k", Algorithm::EdDSA);
    let server = Server::new(&inline(&[&signer])).await;
    let good = claims(json!({}));
    assert_eq!(
        reason(&list(&server, &stranger.sign(&good)).await),
        "signature"
    );
    assert_eq!(
        reason(&list(&server, &unknown.sign(&good)).await),
        "unknown_key"
    );
    assert_eq!(
        reason(&list(&server, &other_kind.sign(&good)).await),
        "algorithm"
    );
    for header in [
        json!({"alg": "none", "kid": "k"}),
        json!({"alg": "None"}),
        json!({"alg": "HS256", "kid": "k"}),
        json!({"kid": "k"}),
    ] {
        let token = forged(&header, &good);
        assert_eq!(
            reason(&list(&server, &token).await),
            "algorithm",
            "{header}"
        );
    }
    // The public key as a shared secret.
    let secret = EncodingKey::from_secret(set(&[&signer]).as_bytes());
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("k".into());
    let token = encode(&header, &good, &secret).unwrap();
    assert_eq!(reason(&list(&server, &token).await), "algorithm");
    // A signature that is cut off, and a payload that was changed.
    let token = signer.sign(&good);
    let (rest, _) = token.rsplit_once('.').unwrap();
    assert_ne!(list(&server, &format!("{rest}.")).await.status, 200);
    let changed = signer.sign(&claims(json!({"tenant": "b"})));
    let payload = changed.split('.').nth(1).unwrap();
    let (header, signature) = (
        token.split('.').next().unwrap(),
        token.rsplit('.').next().unwrap(),
    );
    let token = format!("{header}.{payload}.{signature}");
    assert_eq!(reason(&list(&server, &token).await), "signature");
    // What must be understood and isn't.
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some("k".into());
    header.crit = Some(vec!["b64".into()]);
    let token = encode(&header, &good, &signer.key).unwrap();
    assert_eq!(reason(&list(&server, &token).await), "malformed");
}

#[tokio::test]
async fn what_is_no_token_is_no_key_either() {
    let signer = Signer::new("k", Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    for text in ["", "a", "a.b", "a b.c.d", "llk_c"] {
        assert_eq!(
            list(&server, text).await.error().1,
            "unauthorized",
            "{text:?}"
        );
    }
    assert_eq!(reason(&list(&server, "a.b.c").await), "malformed");
    let long = signer.sign(&claims(json!({"more": "x".repeat(20_000)})));
    assert_eq!(reason(&list(&server, &long).await), "malformed");
    let without = Server::new("[tenants.a]\n").await;
    let good = signer.sign(&claims(json!({})));
    assert_eq!(list(&without, &good).await.error().1, "unauthorized");
}

#[tokio::test]
async fn only_algorithms_that_are_listed_are_taken() {
    let (ec, ed) = (
        Signer::new("ec", Algorithm::ES256),
        Signer::new("ed", Algorithm::EdDSA),
    );
    let keys = format!("jwks = '{}'\nalgorithms = [\"EdDSA\"]", set(&[&ec, &ed]));
    let server = Server::new(&config(&keys)).await;
    assert_eq!(
        list(&server, &ed.sign(&claims(json!({})))).await.status,
        200
    );
    assert_eq!(
        reason(&list(&server, &ec.sign(&claims(json!({})))).await),
        "algorithm"
    );
}

#[tokio::test]
async fn scopes_threads_and_actors_restrict_a_token_as_they_do_a_key() {
    let signer = Signer::new("k", Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    let token = |other| signer.sign(&claims(other));
    let say = "/api/v1/threads/support-1/messages";
    let none = token(json!({"scope": null}));
    assert_eq!(list(&server, &none).await.error().1, "missing_scope");
    let reads = token(json!({"scope": ["read", "admin"]}));
    assert_eq!(list(&server, &reads).await.status, 200);
    let refused = post(&server, &reads, say, json!({"content": "x"})).await;
    assert_eq!(refused.error().1, "missing_scope");
    let some = token(json!({"threads": ["support-*"]}));
    assert_eq!(
        post(&server, &some, say, json!({"content": "x"}))
            .await
            .status,
        202
    );
    let other = post(
        &server,
        &some,
        "/api/v1/threads/other/messages",
        json!({"content": "x"}),
    )
    .await;
    assert_eq!(other.error().1, "forbidden_thread");
    let actor = token(json!({"actors": ["ada"]}));
    for (who, status) in [("ada", 202), ("bob", 403)] {
        let said = json!({"content": "x", "metadata": {"actor": who}});
        assert_eq!(
            post(&server, &actor, say, said).await.status,
            status,
            "{who}"
        );
    }
}

#[tokio::test]
async fn the_claims_may_have_other_names() {
    let signer = Signer::new("k", Algorithm::ES256);
    let keys = format!(
        "jwks = '{}'\n[auth.jwt.claims]\ntenant = \"https://x.example/org\"\nscopes = \"permissions\"\n\
         scope_prefix = \"loomline:\"\nthreads = \"own\"\nactors = \"speaks_as\"",
        set(&[&signer])
    );
    let server = Server::new(&config(&keys)).await;
    let named = json!({
        "tenant": null, "https://x.example/org": "a", "permissions": ["loomline:read", "write"], "own": ["mine"],
    });
    let token = signer.sign(&claims(named));
    assert_eq!(list(&server, &token).await.status, 200);
    let refused = post(&server, &token, "/api/v1/threads", json!({"key": "mine"})).await;
    assert_eq!(refused.error().1, "missing_scope");
}

/// The last thing that a stream of events says.
async fn end(server: &Server, token: &str, then: impl AsyncFnOnce()) -> Value {
    let request = server
        .request("GET", "/api/v1/threads/t/events")
        .header("authorization", format!("Bearer {token}"));
    let request = request.body(Body::empty()).unwrap();
    let opened = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(opened.status(), 200);
    then().await;
    let ended = opened.into_body().collect().await.unwrap().to_bytes();
    let ended = String::from_utf8(ended.into()).unwrap();
    let last = ended.split_terminator("\n\n").last().unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    serde_json::from_str::<Value>(data).unwrap()["error"]["code"].clone()
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_opened_it() {
    let signer = Signer::new("k", Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    server.with_key("llk_a").say("t", "hello").await;
    let short = signer.sign(&claims(json!({"exp": now() + 2})));
    assert_eq!(end(&server, &short, async || {}).await, "key_expired");
    // And with its tenant.
    let long = signer.sign(&claims(json!({})));
    let gone = Config::parse("[tenants.b]\n", &|_| None).unwrap();
    let revoke = async || assert_eq!(server.app.replace_tenants(&gone.tenants).unwrap(), 0);
    assert_eq!(end(&server, &long, revoke).await, "key_revoked");
    assert_eq!(reason(&list(&server, &long).await), "tenant");
}

/// An issuer's address, which counts how often it is asked.
struct Issuer {
    url: String,
    n_asked: Arc<AtomicUsize>,
    keys: Arc<std::sync::Mutex<Option<String>>>,
    _tasks: JoinSet<()>,
}

impl Issuer {
    async fn new(keys: Option<String>) -> Self {
        let keys = Arc::new(std::sync::Mutex::new(keys));
        let n_asked = Arc::new(AtomicUsize::new(0));
        let (shown, counted) = (Arc::clone(&keys), Arc::clone(&n_asked));
        let answer = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let keys = shown.lock().unwrap().clone();
            async move { keys.ok_or(http::StatusCode::SERVICE_UNAVAILABLE) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/jwks.json", get(answer));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            n_asked,
            keys,
            _tasks: tasks,
        }
    }

    fn config(&self, outbound: &str) -> String {
        format!(
            "{outbound}\n{}",
            config(&format!("jwks_url = \"{}\"", self.url))
        )
    }

    fn n_asked(&self) -> usize {
        self.n_asked.load(Ordering::SeqCst)
    }
}

/// Lets the guard reach this machine.
const LOCAL: &str = "[outbound]\nhttp = true\nallow = [\"127.0.0.0/8\"]";

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_a_key_that_is_not_known_but_not_often() {
    let (old, new) = (
        Signer::new("old", Algorithm::ES256),
        Signer::new("new", Algorithm::ES256),
    );
    let issuer = Issuer::new(Some(set(&[&old]))).await;
    let server = Server::new(&issuer.config(LOCAL)).await;
    assert_eq!(issuer.n_asked(), 0);
    for _ in 0..3 {
        assert_eq!(
            list(&server, &old.sign(&claims(json!({})))).await.status,
            200
        );
    }
    assert_eq!(issuer.n_asked(), 1);
    // It has just been asked, so whoever makes names up does not make it be asked again.
    *issuer.keys.lock().unwrap() = Some(set(&[&old, &new]));
    for _ in 0..3 {
        assert_eq!(
            reason(&list(&server, &new.sign(&claims(json!({})))).await),
            "unknown_key"
        );
    }
    assert_eq!(issuer.n_asked(), 1);
}

#[tokio::test]
async fn without_the_issuers_keys_nobody_is_refused_for_good() {
    let signer = Signer::new("k", Algorithm::ES256);
    let issuer = Issuer::new(None).await;
    let server = Server::new(&issuer.config(LOCAL)).await;
    for _ in 0..2 {
        let answer = list(&server, &signer.sign(&claims(json!({})))).await;
        assert_eq!(answer.error(), (503, "issuer_unavailable".into(), None));
        assert!(answer.headers.contains_key("retry-after"));
    }
    assert_eq!(issuer.n_asked(), 1);
    assert_eq!(
        server.with_key("llk_a").get("/api/v1/threads").await.status,
        200
    );
}

#[tokio::test]
async fn the_outbound_guard_judges_where_keys_are_fetched() {
    let signer = Signer::new("k", Algorithm::ES256);
    let issuer = Issuer::new(Some(set(&[&signer]))).await;
    for outbound in ["", "[outbound]\nhttp = true"] {
        let server = Server::new(&issuer.config(outbound)).await;
        let answer = list(&server, &signer.sign(&claims(json!({})))).await;
        assert_eq!(answer.error().1, "issuer_unavailable");
    }
    assert_eq!(issuer.n_asked(), 0);
}

#[tokio::test]
async fn keys_are_read_from_a_file_which_must_be_there() {
    let signer = Signer::new("k", Algorithm::ES256);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("jwks.json");
    let text = config(&format!("jwks_file = '{}'", file.display()));
    let parsed = Config::parse(&text, &|_| None).unwrap();
    for broken in [None, Some("{"), Some("{\"keys\": []}")] {
        if let Some(broken) = broken {
            std::fs::write(&file, broken).unwrap();
        }
        let data = tempfile::tempdir().unwrap();
        let opened = App::open(parsed.clone(), data.path(), OpenMode::ReadWrite).await;
        assert!(matches!(opened, Err(OpenError::Tokens(_))), "{broken:?}");
    }
    std::fs::write(&file, set(&[&signer])).unwrap();
    let server = Server::new(&text).await;
    assert_eq!(
        list(&server, &signer.sign(&claims(json!({})))).await.status,
        200
    );
}

#[tokio::test]
async fn a_token_opens_every_protocol() {
    let signer = Signer::new("k", Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    let token = signer.sign(&claims(json!({})));
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = server
        .request("POST", "/mcp")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let answer = server
        .send(request.body(Body::from(listed.to_string())).unwrap())
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for path in ["/v1/models", "/api/v1/agents"] {
        let request = server
            .request("GET", path)
            .header("authorization", format!("Bearer {token}"));
        assert_eq!(
            server
                .send(request.body(Body::empty()).unwrap())
                .await
                .status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_subject_has_so_many_requests_a_minute_with_all_its_tokens() {
    let signer = Signer::new("ed", Algorithm::EdDSA);
    let limit = format!("jwks = '{}'\nrequests_per_minute = 2", set(&[&signer]));
    let server = Server::new(&config(&limit)).await;
    // Each is another token, for another tenant.
    for (tenant, id) in [("a", 1), ("b", 2)] {
        let token = signer.sign(&claims(json!({"tenant": tenant, "jti": id})));
        assert_eq!(list(&server, &token).await.status, 200);
    }
    let refused = list(&server, &signer.sign(&claims(json!({"jti": 3})))).await;
    assert_eq!(refused.error(), (429, "rate_limited".into(), None));
    let wait = refused.retry_after();
    assert!((1..=31).contains(&wait), "{wait}");
    let other = signer.sign(&claims(json!({"sub": "bob"})));
    assert_eq!(list(&server, &other).await.status, 200);
    // A key has its own.
    let key = server.with_key("llk_a").get("/api/v1/threads").await;
    assert_eq!(key.status, 200);
}
