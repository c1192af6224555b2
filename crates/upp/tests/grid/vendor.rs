//! What a wire format brings to the grid.

use loomline_upp::Model;
use serde_json::Value;
use std::sync::Arc;

/// A situation that every provider meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// One question, the answer `Hello, world` in at least three deltas.
    Text,
    /// A conversation of three turns; each answer is `one`, `two`, `three`.
    Conversation,
    /// Two calls at once: `add` with `{"a":1,"b":2}` spelt `{"a": 1,"b":2}`, and `echo` with `{"text":"x"}`;
    /// then the answer `3 and x`.
    ParallelTools,
    /// The call `add` as above alone; its result is an error; then the answer `sorry`.
    ToolError,
    /// The model runs out of tokens at the call `add`, before any of its arguments; its result is an
    /// error; then the answer `sorry`.
    CutCall,
    /// A picture of the user's, as bytes and (if the format can) as an address.
    Image,
    /// A PDF of the user's, as bytes.
    Document,
    /// Reasoning `let me think` with the format's signature or encrypted form, then a call of `add`; the
    /// second request must carry the reasoning back unchanged; then the answer `3`.
    ReasoningRoundTrip,
    /// A structure is asked for; the answer's data is `{"city":"Oslo","degrees":7}`.
    StructuredOutput,
    /// The model runs out of tokens after `Hel`.
    StopMaxTokens,
    /// The provider's policy stops the answer.
    StopContentFilter,
    /// After `Hel` the provider reports that it is overloaded.
    MidStreamError,
    /// The connection ends in the middle of the answer.
    Truncated,
    /// Status 429 with `Retry-After: 7`.
    RateLimited,
    /// The input is longer than the model takes.
    ContextOverflow,
    /// Status 401; the body quotes the key.
    BadKey,
    /// After `Hel` the provider is silent; the caller cancels.
    Cancellation,
    /// Status 200 and something that is not the format.
    MalformedBody,
    /// Usage with cached tokens: 20 of input in all, 12 of them read from the cache, 5 of output.
    CachedTokens,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body, in the pieces in which it is sent.
    pub(crate) pieces: Vec<String>,
    /// Whether the connection then stays open without a word.
    pub(crate) stalls: bool,
}

impl Reply {
    /// A stream of server-sent events.
    pub(crate) fn events(pieces: Vec<String>) -> Self {
        Self::ok("text/event-stream; charset=utf-8", pieces)
    }

    /// A body of this type with status 200.
    pub(crate) fn ok(content_type: &str, pieces: Vec<String>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            pieces,
            stalls: false,
        }
    }

    /// A refusal.
    pub(crate) fn refusal(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            pieces: vec![body.to_string()],
            stalls: false,
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Makes the vendor fall silent before the end of the answer.
    pub(crate) fn then_silence(mut self) -> Self {
        self.stalls = true;
        self
    }
}

/// A request that the server saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// One wire format with its fixtures.
pub(crate) trait Vendor: Send + Sync + 'static {
    /// The model under test, with the key `sk-secret`, at this address (`http://127.0.0.1:…`).
    fn model(&self, url: &str) -> Arc<dyn Model>;

    /// Why a scenario does not apply, where it does not.
    fn skip(&self, scenario: Scenario) -> Option<&'static str> {
        let _ = scenario;
        None
    }

    /// The answer to the n-th request (from 0) of a scenario.
    fn reply(&self, scenario: Scenario, n: usize) -> Reply;

    /// Asserts that the n-th request is what the vendor's documentation asks for.
    fn check(&self, scenario: Scenario, n: usize, seen: &Seen);
}

/// One test a scenario for a vendor: `vendor!(Anthropic)` in the vendor's module.
#[macro_export]
macro_rules! vendor {
    ($vendor:expr) => {
        $crate::vendor!(@ $vendor,
            fn a_text_is_streamed: Text,
            fn a_conversation_begins_each_request_with_the_bytes_of_the_one_before: Conversation,
            fn calls_side_by_side_come_with_their_text_and_their_results_go_back: ParallelTools,
            fn the_model_is_told_that_a_tool_failed: ToolError,
            fn a_call_that_is_cut_off_is_none_without_arguments: CutCall,
            fn an_image_is_sent: Image,
            fn a_document_is_sent: Document,
            fn reasoning_goes_back_unchanged: ReasoningRoundTrip,
            fn a_structure_is_asked_for_and_read: StructuredOutput,
            fn running_out_of_tokens_is_told: StopMaxTokens,
            fn a_stop_by_policy_is_told: StopContentFilter,
            fn an_error_within_the_stream_ends_it: MidStreamError,
            fn an_answer_that_is_cut_off_is_an_error: Truncated,
            fn a_limit_comes_with_how_long_to_wait: RateLimited,
            fn too_long_an_input_is_told_apart: ContextOverflow,
            fn a_refused_key_is_told_and_never_quoted: BadKey,
            fn cancelling_ends_a_silent_stream_at_once: Cancellation,
            fn what_is_not_the_format_is_an_error: MalformedBody,
            fn cached_tokens_are_counted_apart: CachedTokens,
        );

        #[tokio::test]
        async fn an_answer_that_is_not_the_structure_asked_for_is_an_error() {
            $crate::scenarios::plain_text_for_a_structure($vendor).await;
        }
    };
    (@ $vendor:expr, $(fn $name:ident: $scenario:ident,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let scenario = $crate::vendor::Scenario::$scenario;
                $crate::scenarios::run($vendor, module_path!(), scenario).await;
            }
        )*
    };
}
