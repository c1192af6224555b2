use super::*;
use crate::error::Code;
use std::sync::Mutex;
use tokio::time::Instant;

const ALL: [Code; 12] = Code::ALL;

fn error(code: Code) -> Error {
    Error::new(code, "p", "m")
}

fn ms(delay: Option<Duration>) -> Option<u128> {
    delay.map(|delay| delay.as_millis())
}

fn waits(strategy: &dyn RetryStrategy, code: Code) -> Vec<Option<u128>> {
    (1..=5)
        .map(|attempt| ms(strategy.on_retry(&error(code), attempt)))
        .collect()
}

fn retried(strategy: &dyn RetryStrategy) -> Vec<Code> {
    let retried = |code: &Code| strategy.on_retry(&error(*code), 1).is_some();
    ALL.into_iter().filter(retried).collect()
}

const PASSING: [Code; 4] = [
    Code::RateLimited,
    Code::ProviderError,
    Code::NetworkError,
    Code::Timeout,
];

#[test]
fn exponential_backoff_doubles_up_to_its_limit() {
    let strategy = ExponentialBackoff {
        max_attempts: 4,
        max_delay: Duration::from_millis(3_500),
        jitter: false,
        ..ExponentialBackoff::default()
    };
    assert_eq!(
        waits(&strategy, Code::Timeout),
        [Some(1_000), Some(2_000), Some(3_500), Some(3_500), None]
    );
    assert_eq!(retried(&strategy), PASSING);
    let eager = ExponentialBackoff {
        max_attempts: u32::MAX,
        ..strategy
    };
    assert_eq!(
        ms(eager.on_retry(&error(Code::Timeout), 1_000)),
        Some(3_500)
    );
}

#[test]
fn jitter_is_half_to_one_and_a_half_and_never_above_the_limit() {
    let with = |number: f64, max: u64| {
        let strategy = ExponentialBackoff {
            max_delay: Duration::from_millis(max),
            random: Arc::new(move || number),
            ..ExponentialBackoff::default()
        };
        waits(&strategy, Code::RateLimited)[..3].to_vec()
    };
    assert_eq!(with(0.0, 30_000), [Some(500), Some(1_000), Some(2_000)]);
    assert_eq!(with(0.5, 30_000), [Some(1_000), Some(2_000), Some(4_000)]);
    assert_eq!(with(0.75, 2_000), [Some(1_250), Some(2_000), Some(2_000)]);
}

#[test]
fn linear_backoff_waits_the_delay_times_the_number_of_the_retry() {
    let strategy = LinearBackoff::default();
    assert_eq!(
        waits(&strategy, Code::NetworkError),
        [Some(1_000), Some(2_000), Some(3_000), None, None]
    );
    assert_eq!(retried(&strategy), PASSING);
}

#[test]
fn no_retry_never_retries() {
    assert_eq!(retried(&NoRetry), []);
}

#[test]
fn retry_after_waits_as_long_as_the_provider_asks_or_falls_back() {
    let strategy = RetryAfter::default();
    assert_eq!(
        waits(&strategy, Code::RateLimited),
        [Some(5_000), Some(5_000), Some(5_000), None, None]
    );
    assert_eq!(retried(&strategy), [Code::RateLimited]);
    let asked = |seconds| {
        let mut error = error(Code::RateLimited);
        error.retry_after = Some(Duration::from_secs(seconds));
        strategy.on_retry(&error, 1).unwrap().as_secs()
    };
    assert_eq!((asked(0), asked(7), asked(90_000)), (0, 7, 3_600));
}

/// A bucket whose clock stands where `at` says.
fn bucket(capacity: u32, rate: f64) -> (TokenBucket, Arc<Mutex<Instant>>) {
    let at = Arc::new(Mutex::new(Instant::now()));
    let clock = Arc::clone(&at);
    let clock = Arc::new(move || *clock.lock().unwrap());
    let bucket = TokenBucket::with_clock(capacity, rate, 3, clock).unwrap();
    (bucket, at)
}

#[test]
fn a_bucket_lets_its_capacity_go_and_makes_the_rest_wait_in_line() {
    let (bucket, at) = bucket(2, 2.0);
    let wait = || ms(bucket.before_request());
    assert_eq!([wait(), wait()], [None, None]);
    // Each takes a token of the future.
    assert_eq!([wait(), wait()], [Some(500), Some(1_000)]);
    *at.lock().unwrap() += Duration::from_secs(2);
    // Four tokens have come, two were promised.
    assert_eq!([wait(), wait(), wait()], [None, None, Some(500)]);
    *at.lock().unwrap() += Duration::from_hours(1);
    // It never holds more than its capacity.
    assert_eq!([wait(), wait(), wait()], [None, None, Some(500)]);
}

#[test]
fn a_success_gives_a_bucket_nothing_back() {
    let (bucket, _) = bucket(1, 1.0);
    assert_eq!(ms(bucket.before_request()), None);
    bucket.reset();
    assert_eq!(ms(bucket.before_request()), Some(1_000));
}

#[test]
fn forks_share_the_tokens() {
    let (bucket, _) = bucket(1, 1.0);
    assert_eq!(ms(bucket.fork().before_request()), None);
    assert_eq!(ms(bucket.fork().before_request()), Some(1_000));
}

#[test]
fn requests_that_come_at_once_reserve_one_token_each() {
    let (bucket, _) = bucket(4, 1.0);
    let mut waits: Vec<u128> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| ms(bucket.before_request()).unwrap_or(0)))
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    waits.sort_unstable();
    let expected: Vec<u128> = (0..16_u128).map(|n| n.saturating_sub(3) * 1_000).collect();
    assert_eq!(waits, expected);
}

#[test]
fn a_bucket_retries_rate_limits_only_after_the_time_of_two_tokens() {
    let (bucket, _) = bucket(10, 4.0);
    assert_eq!(retried(&bucket), [Code::RateLimited]);
    assert_eq!(
        waits(&bucket, Code::RateLimited),
        [Some(500), Some(500), Some(500), None, None]
    );
}

#[test]
fn a_bucket_that_would_never_let_anything_go_is_refused() {
    assert_eq!(
        TokenBucket::new(0, 1.0, 3).unwrap_err(),
        RetryConfigError::Capacity
    );
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            TokenBucket::new(1, rate, 3),
            Err(RetryConfigError::RefillRate { .. })
        ));
    }
}

#[test]
fn a_configuration_is_read_in_both_spellings() {
    let read = |json: &str| serde_json::from_str::<RetryConfig>(json);
    let here = r#"{"type":"exponential_backoff","maxAttempts":2,"initialDelay":10,"maxDelay":15,"jitter":false}"#;
    let there = here.replace("initialDelay", "baseDelay");
    assert_eq!(read(here).unwrap(), read(&there).unwrap());
    let strategy = read(&there).unwrap().strategy().unwrap();
    assert_eq!(
        waits(&*strategy, Code::Timeout)[..3],
        [Some(10), Some(15), None]
    );
    assert_eq!(
        read(r#"{"type":"token_bucket","capacity":3}"#).unwrap(),
        read(r#"{"type":"token_bucket","maxTokens":3,"refillRate":1.0,"maxAttempts":3}"#).unwrap()
    );
    for json in [
        r#"{"type":"linear_backoff"}"#,
        r#"{"type":"no_retry"}"#,
        r#"{"type":"retry_after","fallbackDelay":1}"#,
    ] {
        let config = read(json).unwrap();
        assert!(config.strategy().is_ok());
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&written).unwrap(), config);
    }
}

#[test]
fn a_configuration_that_means_nothing_is_refused() {
    let read = |json: &str| serde_json::from_str::<RetryConfig>(json);
    for (json, word) in [
        (r#"{"type":"hope"}"#, "hope"),
        (r#"{"type":"no_retry","maxAttempts":1}"#, "maxAttempts"),
        (r#"{"type":"linear_backoff","delay":-1}"#, "-1"),
        (
            r#"{"type":"token_bucket","capacity":3,"maxTokens":3}"#,
            "duplicate",
        ),
    ] {
        let error = read(json).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let empty = read(r#"{"type":"token_bucket","capacity":0}"#).unwrap();
    assert!(matches!(empty.strategy(), Err(RetryConfigError::Capacity)));
}
