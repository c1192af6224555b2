//! Parts and users' content.

use super::Words;

pub(super) const WORDS: &[Words] = &[
    (
        "MessagePart",
        "The smallest piece of a message (TP 2.0.0 \"Message Parts\"). A kind that is not listed is carried untouched; `system-prompt` may be read and not be written.",
        &[(
            "part_kind",
            "What the part is: `user-prompt`, `text`, `thinking`, `tool-call`, `tool-return`, `retry-prompt`, `file`, or any other word, best `custom:…`.",
        )],
    ),
    (
        "UserPromptPart",
        "What a user wrote (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It is what a user wrote."),
            ("content", "A text, or a list of texts and media."),
            (
                "attachments",
                "Files beside the content (TP 2.0.0 \"Supporting Types\").",
            ),
        ],
    ),
    (
        "TextPart",
        "What a model wrote (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It is a model's text."),
            ("content", "The text."),
            ("id", "The id that the provider gave the text."),
        ],
    ),
    (
        "ThinkingPart",
        "What a model thought (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It is a thought."),
            ("content", "The thought, where it is shown."),
            (
                "signature",
                "The provider's own reference to the thought, opaque.",
            ),
            (
                "provider_name",
                "Whose thought it is, needed to give it back; one without it is warned of.",
            ),
            ("thinking_id", "The id that the provider gave the thought."),
        ],
    ),
    (
        "ToolCallPart",
        "A tool that a model wants called (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It is a call."),
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
        "ToolReturnPart",
        "What a tool returned (TP 2.0.0 \"Message Parts\", TP 0.0.3).",
        &[
            ("part_kind", "It is what a tool returned."),
            ("tool_name", "The tool that was called."),
            ("tool_call_id", "The call that is answered."),
            ("status", "How the tool ended."),
            (
                "content",
                "What it returned, or its error; from 0.0.3 it may be missing, where `content_ref` says where it is.",
            ),
            (
                "content_ref",
                "Where what it returned is, instead of over 100 KB of it here (TP 0.0.3).",
            ),
        ],
    ),
    (
        "RetryPromptPart",
        "What a model is asked to correct (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It asks for a correction."),
            (
                "content",
                "What is wrong: a text, or a list of validation errors.",
            ),
            (
                "tool_name",
                "The tool that was called wrongly, if it was one.",
            ),
            ("tool_call_id", "The call that is answered, if it was one."),
        ],
    ),
    (
        "FilePart",
        "A file that a model made (TP 2.0.0 \"Message Parts\").",
        &[
            ("part_kind", "It is a file."),
            ("content", "The file."),
            ("id", "The id that the provider gave the file."),
        ],
    ),
    (
        "UserContent",
        "A text, or one of the media beside it (TP 2.0.0 \"Supporting Types\"). A kind that is not listed is carried untouched.",
        &[(
            "kind",
            "What the media are: `image-url`, `audio-url`, `document-url`, `video-url`, `binary` or any other word.",
        )],
    ),
    (
        "ImageUrl",
        "An image behind a URL (TP 2.0.0 \"Supporting Types\").",
        &[
            ("kind", "It is an image behind a URL."),
            ("url", "Where it is."),
            ("identifier", "What tools call it."),
            (
                "media_type",
                "The media type (RFC 6838); without one, what the URL says.",
            ),
        ],
    ),
    (
        "AudioUrl",
        "A sound behind a URL (TP 2.0.0 \"Supporting Types\").",
        &[
            ("kind", "It is a sound behind a URL."),
            ("url", "Where it is."),
            ("identifier", "What tools call it."),
            (
                "media_type",
                "The media type (RFC 6838); without one, what the URL says.",
            ),
        ],
    ),
    (
        "DocumentUrl",
        "A document behind a URL (TP 2.0.0 \"Supporting Types\").",
        &[
            ("kind", "It is a document behind a URL."),
            ("url", "Where it is."),
            ("identifier", "What tools call it."),
            (
                "media_type",
                "The media type (RFC 6838); without one, what the URL says.",
            ),
        ],
    ),
    (
        "VideoUrl",
        "A video behind a URL (TP 2.0.0 \"Supporting Types\").",
        &[
            ("kind", "It is a video behind a URL."),
            ("url", "Where it is."),
            ("identifier", "What tools call it."),
            (
                "media_type",
                "The media type (RFC 6838); without one, what the URL says.",
            ),
        ],
    ),
    (
        "BinaryContent",
        "Media in the document itself (TP 2.0.0 \"Supporting Types\").",
        &[
            ("data", "The bytes in base64."),
            ("media_type", "The media type (RFC 6838)."),
            ("identifier", "What tools call it."),
        ],
    ),
    (
        "Attachment",
        "A file that a user attached (TP 2.0.0 \"Supporting Types\"): `data`, or a `url` where it is.",
        &[
            ("name", "The name of the file."),
            ("media_type", "The media type (RFC 6838)."),
            ("url", "Where the file is."),
            ("data", "The bytes in base64."),
            ("size_bytes", "How large the file is, in bytes."),
        ],
    ),
    (
        "ContentRef",
        "Where a content is that is kept elsewhere (TP 0.0.3).",
        &[
            (
                "uri",
                "A URI (RFC 3986); one whose scheme is not recognised may be read and not be written.",
            ),
            ("size_bytes", "How large the content is, in bytes."),
            (
                "hash",
                "`sha256:` and 64 hexadecimal digits; another form may be read and not be written.",
            ),
            ("media_type", "The media type (RFC 6838)."),
        ],
    ),
];
