//! Models without a network: one that reads its replies from JSON text on each call, as a provider
//! would, one that has them ready, and one that streams.

use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use upp::{
    Capabilities, ChatCompletions, Codec, Dialect, Message, Model, ModelEvent, ModelStream,
    Request, Response, StreamEvent,
};

/// The input of a run.
pub(crate) const INPUT: &str = "Please look up the three records you need and then answer.";

/// How many rounds of tools a run has.
pub(crate) const ROUNDS: usize = 3;

/// The bodies of the four replies: three that call a tool, and an answer.
pub(crate) fn replies() -> Vec<String> {
    let reply = |at: usize, content: &str, calls: &str, reason: &str| {
        format!(
            r#"{{"id":"chatcmpl-0123456789abcdef{at}","object":"chat.completion","created":1790000000,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"{calls}}},"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":120,"completion_tokens":24,"total_tokens":144}}}}"#
        )
    };
    let mut replies: Vec<String> = (0..ROUNDS)
        .map(|at| {
            let calls = format!(
                r#","tool_calls":[{{"id":"call_{at}","type":"function","function":{{"name":"lookup","arguments":"{{\"key\":\"record {at}\"}}"}}}}]"#
            );
            reply(at, &format!("Looking up record {at}."), &calls, "tool_calls")
        })
        .collect();
    let answer = "Based on the three lookups, the answer is forty-two. ".repeat(4);
    replies.push(reply(ROUNDS, &answer, "", "stop"));
    replies
}

pub(crate) fn codec() -> ChatCompletions {
    ChatCompletions::new(Dialect::openai(), "m")
}

/// Reads one reply.
pub(crate) fn decode(
    codec: &dyn Codec,
    request: &Request,
    body: &str,
) -> (Vec<StreamEvent>, Response) {
    let mut decoder = codec.decoder(request);
    let mut events = decoder.whole(body).unwrap();
    let (last, response) = decoder.finish().unwrap();
    events.extend(last);
    (events, response)
}

fn told(events: Vec<StreamEvent>, response: Response) -> ModelStream {
    let events = events.into_iter().map(ModelEvent::Event);
    let done = ModelEvent::Done(Box::new(response));
    stream::iter(events.chain([done]).map(Ok)).boxed()
}

/// Where the replies of [`Replies`] come from.
enum Source {
    Text(ChatCompletions, Vec<String>),
    Ready(Vec<(Vec<StreamEvent>, Response)>),
}

/// Gives the replies in turn, over and over, with the events of each.
pub(crate) struct Replies {
    source: Source,
    next: AtomicUsize,
}

impl Replies {
    /// Each reply is read from its text when it is asked for.
    pub(crate) fn parsed() -> Arc<Self> {
        Arc::new(Self {
            source: Source::Text(codec(), replies()),
            next: AtomicUsize::new(0),
        })
    }

    /// The replies were read before; each call gives a copy.
    pub(crate) fn ready() -> Arc<Self> {
        let request = Request::default();
        let read = |body: &String| decode(&codec(), &request, body);
        Arc::new(Self {
            source: Source::Ready(replies().iter().map(read).collect()),
            next: AtomicUsize::new(0),
        })
    }
}

impl Model for Replies {
    fn model_id(&self) -> &'static str {
        "m"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: true,
            ..Capabilities::default()
        }
    }

    fn stream(&self, request: Request) -> ModelStream {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % (ROUNDS + 1);
        assert_eq!(
            at > 0,
            matches!(request.messages.last(), Some(Message::ToolResult(_)))
        );
        let (events, response) = match &self.source {
            Source::Text(codec, bodies) => decode(codec, &request, bodies.get(at).unwrap()),
            Source::Ready(replies) => replies.get(at).cloned().unwrap(),
        };
        told(events, response)
    }
}

/// Streams an answer in so many pieces of text.
pub(crate) struct Deltas {
    n: u32,
    response: Response,
}

impl Deltas {
    pub(crate) fn new(n: u32) -> Arc<Self> {
        let body = replies().pop().unwrap();
        let (_, response) = decode(&codec(), &Request::default(), &body);
        Arc::new(Self { n, response })
    }
}

impl Model for Deltas {
    fn model_id(&self) -> &'static str {
        "m"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: true,
            ..Capabilities::default()
        }
    }

    fn stream(&self, _: Request) -> ModelStream {
        let deltas = (0..self.n).map(|_| {
            let text = "token ".to_owned();
            ModelEvent::Event(StreamEvent::TextDelta { index: 0, text })
        });
        let done = ModelEvent::Done(Box::new(self.response.clone()));
        stream::iter(deltas.chain([done]).map(Ok)).boxed()
    }
}
