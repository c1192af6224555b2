use super::*;
use crate::auth::{KeySource, TokenClaims, TokenConfig};
use std::num::NonZeroU32;
use std::time::Duration;

const JWKS: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

#[test]
fn tokens_are_taken_as_the_file_says() {
    let config = parse(&format!(
        "[auth.jwt]\nissuer = \"https://id.example\"\naudience = [\"one\", \"two\"]\nalgorithms = [\"EdDSA\"]\n\
         jwks = '{JWKS}'\nleeway_s = 5\nrequests_per_minute = 60\n[auth.jwt.claims]\ntenant = \"org\"\n[tenants.a]\n"
    ));
    let expected = TokenConfig {
        issuer: "https://id.example".into(),
        audience: vec!["one".into(), "two".into()],
        algorithms: vec![jsonwebtoken::Algorithm::EdDSA],
        keys: KeySource::Inline(JWKS.into()),
        leeway: Duration::from_secs(5),
        claims: TokenClaims {
            tenant: "org".into(),
            ..TokenClaims::default()
        },
        requests_per_minute: NonZeroU32::new(60),
    };
    assert_eq!(config.unwrap().tokens, Some(expected));
    assert_eq!(parse("").unwrap().tokens, None);
}

#[test]
fn shared_secrets_and_no_signature_are_no_algorithms() {
    let before =
        format!("[tenants.a]\n[auth.jwt]\nissuer = \"i\"\naudience = [\"a\"]\njwks = '{JWKS}'\n");
    refused(
        &before,
        &[
            ("algorithms = [\"HS256\"]", 15, "expected one of: RS256"),
            ("algorithms = [\"none\"]", 15, "expected one of: RS256"),
            ("algorithms = [\"ES256\", \"es384\"]", 24, "ES384"),
            ("leeway_s = 301", 12, "at most 300"),
            ("requests_per_minute = 0", 23, "expected a whole number"),
        ],
    );
}

#[test]
fn tokens_need_keys_an_audience_and_a_tenant() {
    let table = "[auth.jwt]\nissuer = \"i\"\n";
    for (rest, words) in [
        (
            "audience = [\"a\"]\n[tenants.a]",
            "exactly one of jwks, jwks_file and jwks_url",
        ),
        (
            "audience = [\"a\"]\njwks_file = \"f\"\njwks_url = \"https://i.example\"\n[tenants.a]",
            "exactly one of jwks, jwks_file and jwks_url",
        ),
        (
            "audience = []\njwks_file = \"f\"\n[tenants.a]",
            "audience is empty",
        ),
        (
            "audience = [\"a\"]\njwks_file = \"f\"\nalgorithms = []\n[tenants.a]",
            "algorithms is empty",
        ),
        (
            "audience = [\"a\"]\njwks_file = \"f\"",
            "add [tenants.NAME]",
        ),
        (
            "audience = [\"a\"]\njwks_url = \"ftp://i\"\n[tenants.a]",
            "no HTTP address",
        ),
        ("audience = [\"a\"]\njwks = '{'\n[tenants.a]", "no JWKS"),
        (
            "audience = [\"a\"]\njwks = '{\"keys\": []}'\n[tenants.a]",
            "no key that tokens can be signed with",
        ),
        (
            "audience = [\"a\"]\njwks = '{\"keys\": [{\"kty\": \"oct\", \"k\": \"c2VjcmV0\"}]}'\n[tenants.a]",
            "no key that tokens can be signed with",
        ),
        ("jwks_file = \"f\"\n[tenants.a]", "audience"),
    ] {
        let said = said(&format!("{table}{rest}\n"));
        assert!(said.contains(words), "{rest}: {said}");
    }
}
