//! The root, the registry, turns and messages.

use super::Words;

pub(super) const WORDS: &[Words] = &[
    (
        "Thread",
        "A ThreadProtocol document: what happened in a conversation of users and agents (TP 2.0.0 \"Thread (Root Object)\").",
        &[
            (
                "version",
                "The version of the protocol that the document is written in.",
            ),
            (
                "thread_id",
                "The id of the thread, a UUID; another string is warned of.",
            ),
            ("created_at", "When the thread began."),
            ("updated_at", "When the thread last changed."),
            ("title", "What the thread is about, for people."),
            ("metadata", "The application's own, under any keys."),
            (
                "agents",
                "The agent registry: everyone who takes a turn or is named by an event, by `agent_id`.",
            ),
            (
                "turns",
                "The conversation, in order; position orders it, and never an instant.",
            ),
            (
                "relationships",
                "What the thread has to do with other threads (TP 0.0.3).",
            ),
            (
                "parent_thread_id",
                "The thread that this one was spawned from, a UUID; a `spawned_from` link in later versions (TP 1.0.0).",
            ),
            (
                "actions",
                "The conversation as a flat list; `sequence` orders it (TP 1.0.0).",
            ),
        ],
    ),
    (
        "Timestamp",
        "An instant in ISO 8601, as `2026-01-05T08:00:00Z`; one without an offset may be read and not be written.",
        &[],
    ),
    (
        "AgentConfig",
        "An agent of the registry (TP 2.0.0 \"Agent Configuration\"). Prompts and tools live behind `config_ref`, never here.",
        &[
            (
                "agent_id",
                "The id of the agent, a UUID, and its key in `agents`; another string is warned of.",
            ),
            ("agent_name", "The name of the agent, for people."),
            (
                "model_name",
                "The model that the agent asks, as its provider names it: `gpt-4`, `claude-3-opus`.",
            ),
            (
                "provider_name",
                "Who serves the model: `openai`, `anthropic`.",
            ),
            ("created_at", "When the agent was made."),
            ("config_ref", "Where the configuration of the agent is."),
            (
                "agent_identifier",
                "A short name, unique in the thread, as `fred_v1` (TP 1.0.0).",
            ),
        ],
    ),
    (
        "Relationships",
        "What a thread has to do with others (TP 0.0.3).",
        &[(
            "links",
            "The links that go out from here; who points here is found by looking at all threads.",
        )],
    ),
    (
        "ThreadLink",
        "A link to another thread (TP 0.0.3).",
        &[
            (
                "thread_id",
                "The other thread, a UUID; another string may be read and not be written.",
            ),
            (
                "relation",
                "What the other is to this one: `spawned_from`, `merged_from`, `referenced` or any other word.",
            ),
            ("metadata", "More about the link, under any keys."),
        ],
    ),
    (
        "Turn",
        "A turn of a user or of an agent (TP 2.0.0 \"Turns\").",
        &[(
            "turn_type",
            "Whose turn it is: `user` or `agent`; another kind may be read and not be written.",
        )],
    ),
    (
        "UserTurn",
        "What a user submitted, which is the request that starts what follows (TP 2.0.0 \"Turns\").",
        &[
            ("turn_type", "It is a user's turn."),
            ("submitted_at", "When the user submitted it."),
            (
                "parts",
                "What the user submitted, usually one `user-prompt`.",
            ),
            (
                "attachments",
                "Files beside the parts (TP 2.0.0 \"Supporting Types\").",
            ),
            (
                "client_metadata",
                "What the user's client says, never shown to a model; each key has a namespace that ends with one of `: . / _ -` (TP 0.0.3).",
            ),
        ],
    ),
    (
        "AgentTurn",
        "One run of one agent (TP 2.0.0 \"Turns\", TP 0.0.4 \"Updated AgentTurn\").",
        &[
            ("turn_type", "It is an agent's turn."),
            ("agent_id", "The agent that ran, a key of `agents`."),
            ("started_at", "When the run started."),
            (
                "messages",
                "What was said in the run, in order, without the request that started it.",
            ),
            (
                "total_usage",
                "What all models used in the run, dropped responses included.",
            ),
            (
                "completed_at",
                "When the run ended; from 0.0.4 only where the turn is complete.",
            ),
            (
                "completion_status",
                "How the run ended; an interrupted turn keeps its complete cycles of responses and answers (TP 0.0.4 \"Updated AgentTurn\").",
            ),
            (
                "interruption",
                "Why and when the run was interrupted, if it was (TP 0.0.4 \"Updated AgentTurn\").",
            ),
        ],
    ),
    (
        "Interruption",
        "Why and when a run was interrupted (TP 0.0.4 \"Updated AgentTurn\").",
        &[
            (
                "reason",
                "Why: `user_cancelled`, `timeout`, `network_failure`, `safety_halt`, `error` or any other word.",
            ),
            ("interrupted_at", "When."),
        ],
    ),
    (
        "Message",
        "A message between agent and model, or an event (TP 2.0.0 \"ThreadMessage\", \"SystemMessage\").",
        &[(
            "message_type",
            "What it is: `request`, `response` or `system`; another kind may be read and not be written.",
        )],
    ),
    (
        "ThreadMessage",
        "What an agent asked a model, or what the model answered (TP 2.0.0 \"ThreadMessage\").",
        &[
            (
                "message_type",
                "`request` to the model, or `response` of it.",
            ),
            ("timestamp", "When it was said."),
            ("parts", "What was said, in order."),
            (
                "agent_id",
                "The agent that asked or answered, a key of `agents`.",
            ),
            ("model_name", "The model that answered; on responses."),
            ("provider_name", "Who served the model; on responses."),
            (
                "provider_response_id",
                "The id that the provider gave the response; on responses.",
            ),
            ("usage", "What the model used; on responses."),
            ("finish_reason", "Why the model stopped; on responses."),
        ],
    ),
    (
        "Usage",
        "What models used, in tokens (TP 2.0.0 \"Supporting Types\").",
        &[
            ("input_tokens", "Tokens that were read."),
            ("output_tokens", "Tokens that were written."),
            ("thinking_tokens", "Tokens that were thought."),
            ("total_tokens", "All tokens."),
        ],
    ),
];
