//! The actions of 1.0.0.

use super::Words;

pub(super) const WORDS: &[Words] = &[
    (
        "Action",
        "One thing that happened (TP 1.0.0).",
        &[
            (
                "action_type",
                "What it is: `user_message`, `assistant_message`, `thinking`, `tool_call`, `tool_return` or `system.…`; another kind is read with a warning.",
            ),
            ("timestamp", "When it happened."),
            ("sequence", "Its place in the thread, from 1."),
            ("action_id", "The id of the action."),
        ],
    ),
    (
        "UserMessage",
        "What a user wrote; a turn of the user in later versions (TP 1.0.0).",
        &[
            ("action_type", "It is what a user wrote."),
            ("content", "A text, or a list of contents."),
            ("attachments", "Files beside the content."),
        ],
    ),
    (
        "AssistantMessage",
        "What an agent answered; text of a response in later versions (TP 1.0.0).",
        &[
            ("action_type", "It is what an agent answered."),
            ("agent_id", "The agent, a key of `agents`."),
            ("content", "A text, or a list of contents."),
            ("finish_reason", "Why the model stopped."),
            ("usage", "What the model used."),
        ],
    ),
    (
        "Thinking",
        "What a model thought; part of the response that follows in later versions (TP 1.0.0).",
        &[
            ("action_type", "It is a thought."),
            ("agent_id", "The agent, a key of `agents`."),
            ("content", "The thought, where it is shown."),
            (
                "signature",
                "The provider's own reference to the thought, opaque.",
            ),
            (
                "provider_name",
                "Whose thought it is; one without it is warned of.",
            ),
            ("thinking_id", "The id that the provider gave the thought."),
            ("usage", "What the model used."),
        ],
    ),
    (
        "ToolCall",
        "A tool that a model wants called (TP 1.0.0).",
        &[
            ("action_type", "It is a call."),
            ("agent_id", "The agent, a key of `agents`."),
            ("tool_name", "The tool."),
            (
                "tool_call_id",
                "The id of the call, by which it is answered.",
            ),
            (
                "args",
                "The arguments: an object, or the model's own text of one.",
            ),
        ],
    ),
    (
        "ToolReturn",
        "What a tool returned (TP 1.0.0).",
        &[
            ("action_type", "It is what a tool returned."),
            ("tool_name", "The tool that was called."),
            ("tool_call_id", "The call that is answered."),
            ("status", "How the tool ended."),
            ("content", "What it returned, or its error."),
        ],
    ),
    (
        "SystemEvent",
        "Something that happened beside what was said; a system message in later versions (TP 1.0.0).",
        &[
            ("action_type", "`system.` and the name of the event."),
            ("data", "What the event carries."),
        ],
    ),
    (
        "ContentPart",
        "A piece of what was written (TP 1.0.0).",
        &[(
            "type",
            "What it is: `text`, `image`, `file`, `audio` or `video`; another kind is read with a warning.",
        )],
    ),
    (
        "TextContent",
        "A text (TP 1.0.0).",
        &[("type", "It is a text."), ("text", "The text.")],
    ),
    (
        "ImageContent",
        "An image (TP 1.0.0).",
        &[
            ("type", "It is an image."),
            ("image_url", "Where it is."),
            ("image_base64", "The bytes in base64."),
            ("media_type", "The media type (RFC 6838)."),
        ],
    ),
];
