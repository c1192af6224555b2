//! The part of a conversation that a remote agent has not received yet.

use super::position::{Address, RemotePosition};
use super::refused::RemoteRefusal;
use upp::{Message, Messages, ToolResult, ToolResultMessage};

/// Maximum number of messages sent to a remote agent; older ones are left out. A conversation may
/// be long before the agent joins it.
const MAX_MESSAGES: usize = 100;

/// The part of a conversation that a remote agent has not received yet: everything since its last
/// answer, except what it refused. The cost is proportional to this part, not to the conversation.
#[derive(Clone, Debug, Default)]
pub struct News<'a> {
    /// The position of the remote conversation; `None` if there is none yet.
    pub position: Option<RemotePosition>,
    /// The texts of the agent's last answer.
    pub texts: Vec<&'a str>,
    /// The answers to its questions, in order.
    pub results: Vec<&'a ToolResult>,
    /// The messages of users and of other agents since then.
    pub messages: Vec<&'a Message>,
    /// Whether the user posted something else instead of answers. The agent's questions are then
    /// withdrawn.
    pub superseded: bool,
    /// Whether the answers are to questions of another conversation, from which this one was
    /// forked.
    pub asks_others: bool,
    /// Whether older messages are omitted.
    pub cut: bool,
}

impl<'a> News<'a> {
    /// The news for `agent` at the address `at`, on the thread `conversation`.
    pub fn of(messages: &'a Messages, agent: &str, at: &Address, conversation: &str) -> Self {
        let mut news = Self::default();
        let mut since = Vec::new();
        let mut is_refused = false;
        for (n_seen, place) in (0..messages.len()).rev().enumerate() {
            let Some(message) = messages.get(place) else {
                break;
            };
            let stands = match message {
                Message::Assistant(answer) => RemotePosition::of(answer),
                Message::User(_) | Message::ToolResult(_) => None,
            };
            if let Some(stands) = stands.filter(|it| it.agent == agent && at.is(&it.at)) {
                if stands.conversation == conversation || stands.context.is_none() {
                    news.texts = texts(message);
                    news.position = Some(stands);
                    break;
                }
                news.asks_others |= !stands.asks.is_empty() && are_answers(&since);
                // What another conversation refused came after what it has answered.
                is_refused = false;
            }
            if n_seen == MAX_MESSAGES {
                news.cut = true;
                break;
            }
            let refused = RemoteRefusal::of(message);
            is_refused |= refused.is_some_and(|it| it.agent == agent && at.is(&it.at));
            if !is_refused {
                since.push(message);
            }
        }
        since.reverse();
        let asks = news.position.as_ref().is_some_and(|it| !it.asks.is_empty());
        for message in since {
            match message {
                Message::ToolResult(results) if asks => {
                    news.superseded |= is_superseded(results);
                    news.results.extend(&results.results);
                }
                // Of calls of other agents the answers tell.
                Message::ToolResult(_) => {}
                Message::User(_) | Message::Assistant(_) => news.messages.push(message),
            }
        }
        news
    }

    /// The remote names of the texts that the run has sent so far, if answers continue that run.
    /// Empty if a new run starts.
    pub fn names(&self) -> &[String] {
        match &self.position {
            Some(place) if !self.superseded && !self.results.is_empty() => &place.texts,
            Some(_) | None => &[],
        }
    }
}

/// Whether the messages contain answers only.
fn are_answers(since: &[&Message]) -> bool {
    let is_answer = |message: &&Message| match message {
        Message::ToolResult(results) => !is_superseded(results),
        Message::User(_) | Message::Assistant(_) => false,
    };
    !since.is_empty() && since.iter().all(is_answer)
}

/// Whether the user posted something else instead of these answers.
fn is_superseded(results: &ToolResultMessage) -> bool {
    results.id.as_str().ends_with(":superseded")
}

fn texts(message: &Message) -> Vec<&str> {
    let Message::Assistant(answer) = message else {
        return Vec::new();
    };
    let content = answer.content.iter();
    content
        .filter_map(|block| match block {
            upp::AssistantContent::Text { text } => Some(text.as_str()),
            upp::AssistantContent::Reasoning { .. }
            | upp::AssistantContent::Image(_)
            | upp::AssistantContent::Audio(_)
            | upp::AssistantContent::Video(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use upp::{AssistantMessage, MessageOptions};

    fn address() -> Address {
        Address::new("https://a.b/c", "https://a.b")
    }

    fn answer(conversation: &str, context: Option<&str>, asks: bool) -> Message {
        let ask = super::super::RemoteQuestion {
            call: "c".into(),
            id: None,
            thread_key: None,
            kind: super::super::AskKind::Words,
        };
        let place = RemotePosition {
            agent: "far".into(),
            at: address().as_text().into(),
            conversation: conversation.into(),
            context: context.map(Into::into),
            run: Some("r".into()),
            asks: asks.then_some(ask).into_iter().collect(),
            texts: Vec::new(),
        };
        let options = MessageOptions {
            metadata: Some(place.metadata()),
            ..MessageOptions::default()
        };
        let said = vec![upp::AssistantContent::Text { text: "it".into() }];
        AssistantMessage::new(said, Vec::new(), options).into()
    }

    fn told(messages: Vec<Message>) -> (bool, usize, usize) {
        let messages: Messages = messages.into_iter().collect();
        let news = News::of(&messages, "far", &address(), "t");
        (
            news.position.is_some(),
            news.results.len(),
            news.messages.len(),
        )
    }

    #[test]
    fn only_what_came_after_the_last_answer_from_there_is_news() {
        let said = |text: &str| Message::from(text);
        let own = AssistantMessage::text("mine");
        assert_eq!(told(vec![said("a"), said("b")]), (false, 0, 2));
        let all = vec![
            said("a"),
            answer("t", Some("x"), false),
            own.into(),
            said("b"),
        ];
        assert_eq!(told(all), (true, 0, 2));
    }

    #[test]
    fn a_fork_is_another_conversation_where_there_are_conversations() {
        let with = |context| vec![answer("other", context, false), Message::from("b")];
        assert_eq!(told(with(Some("x"))), (false, 0, 2));
        // Responses goes on from any answer.
        assert_eq!(told(with(None)), (true, 0, 1));
    }

    #[test]
    fn a_fork_can_not_answer_what_the_first_conversation_is_asked() {
        let result = ToolResult {
            tool_call_id: "c".into(),
            result: "42".into(),
            is_error: false,
        };
        let results = ToolResultMessage::new(vec![result], MessageOptions::default());
        let stray = |conversation, context, rest: Option<&str>| {
            let rest = rest.map(Message::from);
            let all = [answer(conversation, context, true), results.clone().into()];
            let messages: Messages = all.into_iter().chain(rest).collect();
            News::of(&messages, "far", &address(), "t").asks_others
        };
        assert!(stray("other", Some("x"), None));
        // What is said after that is heard in a conversation of its own.
        assert!(!stray("other", Some("x"), Some("go on")));
        assert!(!stray("t", Some("x"), None));
        assert!(!stray("other", None, None));
    }

    #[test]
    fn answers_are_told_from_words_in_their_place() {
        let result = ToolResult {
            tool_call_id: "c".into(),
            result: "42".into(),
            is_error: false,
        };
        let results = |id: &str| {
            let options = MessageOptions {
                id: Some(id.into()),
                ..MessageOptions::default()
            };
            Message::from(ToolResultMessage::new(vec![result.clone()], options))
        };
        for (id, superseded) in [("m", false), ("m:superseded", true)] {
            let all = vec![answer("t", Some("x"), true), results(id), "go on".into()];
            let messages: Messages = all.into_iter().collect();
            let news = News::of(&messages, "far", &address(), "t");
            assert_eq!((news.superseded, news.results.len()), (superseded, 1));
            assert_eq!(news.messages.len(), 1);
        }
    }

    /// Marks a message as the last one of those that `agent` refuses.
    fn refused(text: &str, agent: &str) -> Message {
        let refused = RemoteRefusal {
            agent: agent.into(),
            at: address().as_text().into(),
        };
        refused.marked(Message::from(text))
    }

    #[test]
    fn what_was_refused_is_not_told_again_nor_what_came_with_it() {
        let said = |text: &str| Message::from(text);
        let all = vec![
            answer("t", Some("x"), false),
            said("a"),
            refused("b", "far"),
            said("c"),
        ];
        assert_eq!(told(all), (true, 0, 1));
        // What another agent refuses is told.
        assert_eq!(told(vec![refused("a", "near"), said("b")]), (false, 0, 2));
        // A fork is told what the first conversation had heard.
        let all = vec![
            said("a"),
            answer("other", Some("x"), false),
            refused("b", "far"),
            said("c"),
        ];
        assert_eq!(told(all), (false, 0, 3));
    }

    #[test]
    fn what_others_said_before_is_told_from_its_end() {
        let all = (0..300).map(|n| Message::from(n.to_string())).collect();
        assert_eq!(told(all), (false, 0, MAX_MESSAGES));
    }
}
