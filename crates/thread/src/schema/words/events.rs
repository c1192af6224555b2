//! System messages and the payloads of the protocol's own events.

use super::Words;

pub(super) const WORDS: &[Words] = &[
    (
        "SystemMessage",
        "Something that happened beside what was said (TP 2.0.0 \"SystemMessage\").",
        &[
            ("message_type", "It is an event."),
            ("timestamp", "When it happened."),
            (
                "event_type",
                "What happened. Before 0.0.4 any name, `agent.handoff`, `thread.spawn`, `thread.merge`, `thread.end` and `error` being the protocol's, `meta:*` telemetry; from 0.0.4 `data-tp-*` is the protocol's, `data-sys-*` telemetry, any other name the application's.",
            ),
            (
                "event_data",
                "What the event carries; from 0.0.4 that of `data-tp-*` is an object with members of its own.",
            ),
            (
                "source_agent",
                "The agent that caused it, a key of `agents`.",
            ),
            (
                "target_agents",
                "The agents that it concerns, keys of `agents`.",
            ),
        ],
    ),
    (
        "AgentHandoff",
        "What `data-tp-agent_handoff` carries: control passed between agents (TP 0.0.4 \"Tier 1\"). One without `to` and without `target_agents` is warned of.",
        &[
            ("from", "Who had control."),
            ("to", "Who has control."),
            ("reason", "Why it passed."),
            ("timestamp", "When it happened."),
        ],
    ),
    (
        "ThreadSpawn",
        "What `data-tp-thread_spawn` carries: a thread was made from this one (TP 0.0.4 \"Tier 1\").",
        &[
            ("spawned_thread_id", "The new thread."),
            ("timestamp", "When it happened."),
        ],
    ),
    (
        "ThreadMerge",
        "What `data-tp-thread_merge` carries: another thread went into this one (TP 0.0.4 \"Tier 1\"). One that names no thread is warned of.",
        &[
            ("merged_thread_id", "The thread that was merged."),
            ("source_thread_id", "The same, by the other name in use."),
            ("timestamp", "When it happened."),
        ],
    ),
    (
        "ThreadEnd",
        "What `data-tp-thread_end` carries: the thread is over (TP 0.0.4 \"Tier 1\").",
        &[
            ("reason", "Why it is over."),
            ("timestamp", "When it happened."),
        ],
    ),
    (
        "ErrorEvent",
        "What `data-tp-error` carries: something failed (TP 0.0.4 \"Tier 1\"). One with neither member is warned of.",
        &[
            ("message", "What failed, for people."),
            ("code", "What failed, for programs."),
            ("timestamp", "When it happened."),
        ],
    ),
];
