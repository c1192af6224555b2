use super::*;
use crate::error::Code;
use secrecy::ExposeSecret;
use std::sync::Mutex;

fn secret(key: &str) -> SecretString {
    key.to_owned().into()
}

async fn drawn(strategy: &dyn KeyStrategy, times: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for _ in 0..times {
        keys.push(strategy.key().await.unwrap().expose_secret().to_owned());
    }
    keys
}

#[tokio::test]
async fn round_robin_gives_each_key_in_turn() {
    let keys = RoundRobinKeys::new(["a", "b", "c"].map(secret).to_vec()).unwrap();
    assert_eq!(drawn(&keys, 5).await, ["a", "b", "c", "a", "b"]);
    let one = RoundRobinKeys::new(vec![secret("a")]).unwrap();
    assert_eq!(drawn(&one, 2).await, ["a", "a"]);
}

#[tokio::test]
async fn weighted_keys_are_drawn_by_their_share() {
    let numbers = Mutex::new([0.999, 0.25, 0.249, 0.0].to_vec());
    let random: Random = Arc::new(move || numbers.lock().unwrap().pop().unwrap());
    let keys = vec![(secret("a"), 1.0), (secret("b"), 3.0)];
    let keys = WeightedKeys::with_random(keys, random).unwrap();
    assert_eq!(drawn(&keys, 4).await, ["a", "a", "b", "b"]);
}

#[test]
fn a_strategy_without_keys_or_with_a_weight_that_is_none_is_refused() {
    assert_eq!(
        RoundRobinKeys::new(Vec::new()).unwrap_err(),
        ApiKeyError::Empty
    );
    assert_eq!(
        WeightedKeys::new(Vec::new()).unwrap_err(),
        ApiKeyError::Empty
    );
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let keys = vec![(secret("a"), 1.0), (secret("b"), weight)];
        let error = WeightedKeys::new(keys).unwrap_err();
        assert!(
            matches!(error, ApiKeyError::Weight { at: 1, .. }),
            "{weight}"
        );
    }
}

#[tokio::test]
async fn a_dynamic_key_is_made_anew_each_time_and_may_fail() {
    let asked = Arc::new(AtomicUsize::new(0));
    let keys = DynamicKey::new(move || {
        let asked = asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match asked {
                2 => Err(Error::new(Code::AuthenticationFailed, "vault", "sealed")),
                asked => Ok(secret(&format!("key-{asked}"))),
            }
        })
    });
    assert_eq!(drawn(&keys, 2).await, ["key-0", "key-1"]);
    assert_eq!(
        keys.key().await.unwrap_err().code,
        Code::AuthenticationFailed
    );
}

#[test]
fn no_key_is_seen_in_debug_output() {
    let keys = || vec![secret("sk-hidden-1"), secret("sk-hidden-2")];
    let weighted = keys().into_iter().map(|key| (key, 1.0)).collect();
    for text in [
        format!("{:?}", RoundRobinKeys::new(keys()).unwrap()),
        format!("{:?}", WeightedKeys::new(weighted).unwrap()),
        format!("{:?}", StaticKey(secret("sk-hidden-3"))),
        format!(
            "{:?}",
            DynamicKey::new(|| Box::pin(async { Ok(secret("sk-hidden-4")) }))
        ),
    ] {
        assert!(!text.contains("hidden"), "{text}");
    }
}

#[test]
fn of_a_key_four_characters_at_each_end_are_shown_and_of_a_short_one_none() {
    assert_eq!(mask_key("sk-abcdefgh-1234"), "sk-a...1234");
    assert_eq!(mask_key("12345678"), "***");
    assert_eq!(mask_key(""), "***");
    assert_eq!(mask_key("äöüß-ÄÖÜẞ"), "äöüß...ÄÖÜẞ");
}
