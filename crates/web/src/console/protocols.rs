//! The protocols that reach a thread, with the address and samples of each.

use super::samples::{CurlSample, literal, shell_word};
use crate::link::path_segment;

/// The message of the samples.
const MESSAGE: &str = "Good morning";
/// The key, in samples of JavaScript and of Python.
const JS_KEY: &str = "`Bearer ${process.env.LOOMLINE_KEY}`";
const PYTHON_KEY: &str = "os.environ[\"LOOMLINE_KEY\"]";

/// A thread, and the server that clients reach it through.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTarget<'a> {
    /// The URL of the server, without a slash at the end.
    pub base: &'a str,
    /// The key of the thread.
    pub key: &'a str,
    /// The id of the thread.
    pub id: &'a str,
    /// The id of the thread in the Threads API.
    pub thread_id: &'a str,
    /// The name of the default agent.
    pub agent: &'a str,
    /// The paths of the protocols' entry points, by name.
    pub links: &'a [(&'static str, &'static str)],
    /// Whether the server needs a key.
    pub needs_key: bool,
}

/// A protocol: its address for the thread, and samples.
pub(crate) struct ProtocolAccess {
    /// Its name.
    pub(crate) name: &'static str,
    /// The address for the thread.
    pub(crate) address: String,
    /// A remark.
    pub(crate) note: Option<String>,
    /// Samples.
    pub(crate) samples: Vec<CodeSample>,
}

/// A piece of code.
pub(crate) struct CodeSample {
    /// Its purpose.
    pub(crate) title: &'static str,
    /// The code.
    pub(crate) code: String,
}

impl ConnectTarget<'_> {
    /// The protocols that reach the thread.
    pub(crate) fn protocols(&self) -> Vec<ProtocolAccess> {
        vec![
            self.native(),
            self.ai_sdk(),
            self.responses(),
            self.chat_completions(),
            self.threads_api(),
            self.ag_ui(),
            self.lang_graph(),
            self.a2a(),
            self.mcp(),
            self.command_line(),
        ]
    }

    /// The address of a protocol's entry point.
    fn entry(&self, name: &str) -> String {
        let mut links = self.links.iter();
        let path = links.find(|(link, _)| *link == name).map(|(_, path)| *path);
        format!("{}{}", self.base, path.unwrap_or_default())
    }

    /// The address of this thread in the native API.
    fn native_url(&self) -> String {
        format!("{}/{}", self.entry("threads"), path_segment(self.key))
    }

    /// The key as a further member of an object in JavaScript.
    fn js_headers(&self) -> String {
        if self.needs_key {
            format!(", headers: {{ authorization: {JS_KEY} }}")
        } else {
            String::new()
        }
    }

    fn native(&self) -> ProtocolAccess {
        let url = self.native_url();
        let (messages, events) = (format!("{url}/messages"), format!("{url}/events"));
        let body = format!("{{\"content\": {}, \"stream\": true}}", literal(MESSAGE));
        let follow = format!("{events}?until=rest");
        let post = CurlSample {
            is_stream: true,
            body: Some(&body),
            ..self.curl(&messages)
        };
        let read = CurlSample {
            is_stream: true,
            ..self.curl(&follow)
        };
        let key = if self.needs_key {
            format!(", authorization: {JS_KEY}")
        } else {
            String::new()
        };
        let fetch = format!(
            "const response = await fetch({}, {{ headers: {{ accept: \"text/event-stream\"{key} }} }});\n\
             for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);",
            literal(&events),
        );
        let source = format!(
            "const events = new EventSource({});\n\
             events.addEventListener(\"chunk.emitted\", (event) => console.log(JSON.parse(event.data)));",
            literal(&events),
        );
        let mut samples = vec![
            sample(
                "Send a message and follow the answer, with curl",
                post.text(),
            ),
            sample("Read the log, with curl", read.text()),
            sample("Follow the log, with fetch", fetch),
        ];
        if !self.needs_key {
            samples.push(sample("Follow the log, with EventSource", source));
        }
        ProtocolAccess {
            name: "Native API",
            address: url,
            note: None,
            samples,
        }
    }

    fn ai_sdk(&self) -> ProtocolAccess {
        let url = self.entry("aiSdk");
        // The AI SDK puts the id into the path as it is.
        let is_resumable = path_segment(self.key) == self.key;
        let resume = if is_resumable {
            "\n  resume: true,"
        } else {
            ""
        };
        let headers = self.js_headers();
        let code = format!(
            "import {{ useChat }} from \"@ai-sdk/react\";\n\
             import {{ DefaultChatTransport }} from \"ai\";\n\n\
             const chat = useChat({{\n  id: {},{resume}\n  \
             transport: new DefaultChatTransport({{ api: {}{headers} }}),\n}});",
            literal(self.key),
            literal(&url),
        );
        ProtocolAccess {
            name: "AI SDK",
            address: url,
            note: None,
            samples: vec![sample("useChat", code)],
        }
    }

    /// The lines that make a client of `OpenAI`'s Python package.
    fn openai_client(&self) -> String {
        let url = literal(&format!("{}/v1", self.base));
        if self.needs_key {
            format!(
                "import os\nfrom openai import OpenAI\n\n\
                 client = OpenAI(base_url={url}, api_key={PYTHON_KEY})\n"
            )
        } else {
            format!(
                "from openai import OpenAI\n\nclient = OpenAI(base_url={url}, api_key=\"any\")\n"
            )
        }
    }

    fn responses(&self) -> ProtocolAccess {
        let code = format!(
            "{}response = client.responses.create(model={}, conversation={}, input={})\nprint(response.output_text)",
            self.openai_client(),
            literal(self.agent),
            literal(self.key),
            literal(MESSAGE),
        );
        let url = format!("{}/v1/responses", self.base);
        let body = format!(
            "{{\"model\": {}, \"conversation\": {}, \"input\": {}}}",
            literal(self.agent),
            literal(self.key),
            literal(MESSAGE)
        );
        let post = CurlSample {
            body: Some(&body),
            ..self.curl(&url)
        };
        ProtocolAccess {
            name: "OpenAI Responses",
            note: Some("A model is an agent, a conversation is a thread.".to_owned()),
            samples: vec![sample("Python, openai", code), sample("curl", post.text())],
            address: url,
        }
    }

    fn chat_completions(&self) -> ProtocolAccess {
        let code = format!(
            "{}completion = client.chat.completions.create(\n    model={},\n    \
             messages=[{{\"role\": \"user\", \"content\": {}}}],\n    metadata={{\"thread\": {}}},\n)\n\
             print(completion.choices[0].message.content)",
            self.openai_client(),
            literal(self.agent),
            literal(MESSAGE),
            literal(self.key),
        );
        ProtocolAccess {
            name: "OpenAI Chat Completions",
            address: self.entry("chatCompletions"),
            note: None,
            samples: vec![sample("Python, openai", code)],
        }
    }

    fn threads_api(&self) -> ProtocolAccess {
        let id = literal(self.thread_id);
        let code = format!(
            "{}client.beta.threads.messages.create(thread_id={id}, role=\"user\", content={})\n\
             client.beta.threads.runs.create_and_poll(thread_id={id}, assistant_id={})\n\
             print(client.beta.threads.messages.list({id}).data[0].content[0].text.value)",
            self.openai_client(),
            literal(MESSAGE),
            literal(self.agent),
        );
        let url = format!("{}/v1/threads/{}", self.base, path_segment(self.thread_id));
        let messages = format!("{url}/messages");
        let read = self.curl(&messages);
        ProtocolAccess {
            name: "Threads API (Assistants, AITP)",
            note: None,
            samples: vec![
                sample("Python, openai", code),
                sample("Read the messages, with curl", read.text()),
            ],
            address: url,
        }
    }

    fn ag_ui(&self) -> ProtocolAccess {
        let url = self.entry("agUi");
        let headers = self.js_headers();
        let code = format!(
            "import {{ HttpAgent }} from \"@ag-ui/client\";\n\n\
             const agent = new HttpAgent({{ url: {}, threadId: {}{headers} }});\n\
             agent.addMessage({{ id: crypto.randomUUID(), role: \"user\", content: {} }});\n\
             await agent.runAgent();",
            literal(&url),
            literal(self.key),
            literal(MESSAGE),
        );
        let messages = format!("{url}/threads/{}/messages", path_segment(self.key));
        let read = self.curl(&messages);
        ProtocolAccess {
            name: "AG-UI",
            address: url,
            note: None,
            samples: vec![
                sample("JavaScript, @ag-ui/client", code),
                sample("Read the messages, with curl", read.text()),
            ],
        }
    }

    fn lang_graph(&self) -> ProtocolAccess {
        let (import, key) = if self.needs_key {
            ("import os\n", format!(", api_key={PYTHON_KEY}"))
        } else {
            ("", String::new())
        };
        let code = format!(
            "{import}from langgraph_sdk import get_sync_client\n\n\
             client = get_sync_client(url={}{key})\nmessages = [{{\"role\": \"user\", \"content\": {}}}]\n\
             for part in client.runs.stream({}, {}, input={{\"messages\": messages}}, stream_mode=\"messages-tuple\"):\n    \
             print(part.event, part.data)",
            literal(self.base),
            literal(MESSAGE),
            literal(self.id),
            literal(self.agent),
        );
        let url = format!("{}/threads/{}", self.base, path_segment(self.id));
        let state = format!("{url}/state");
        let read = self.curl(&state);
        ProtocolAccess {
            name: "LangGraph and the Agent Protocol",
            note: None,
            samples: vec![
                sample("Python, langgraph-sdk", code),
                sample("Read the state, with curl", read.text()),
            ],
            address: url,
        }
    }

    fn a2a(&self) -> ProtocolAccess {
        let card = self.entry("a2a");
        let read = CurlSample {
            needs_key: false,
            ..self.curl(&card)
        };
        let url = format!("{}/a2a/v1/message:send", self.base);
        let body = format!(
            "{{\"message\": {{\"messageId\": \"message-1\", \"role\": \"ROLE_USER\", \"contextId\": {}, \"parts\": [{{\"text\": {}}}]}}}}",
            literal(self.key),
            literal(MESSAGE),
        );
        let send = CurlSample {
            headers: &["A2A-Version: 1.0"],
            body: Some(&body),
            ..self.curl(&url)
        };
        let code = format!(
            "from a2a.client import create_client\n\nclient = await create_client({})",
            literal(self.base),
        );
        ProtocolAccess {
            name: "A2A",
            note: Some(
                "A context is a thread. Each message needs an id of its own: a repeated id is the same message."
                    .to_owned(),
            ),
            samples: vec![
                sample("Read the card, with curl", read.text()),
                sample("Send a message, with curl", send.text()),
                sample("Python, a2a-sdk", code),
            ],
            address: card,
        }
    }

    fn mcp(&self) -> ProtocolAccess {
        let url = self.entry("mcp");
        let headers = if self.needs_key {
            ",\n      \"headers\": { \"authorization\": \"Bearer $LOOMLINE_KEY\" }"
        } else {
            ""
        };
        let code = format!(
            "{{\n  \"mcpServers\": {{\n    \"loomline\": {{\n      \"type\": \"http\",\n      \"url\": {}{headers}\n    }}\n  }}\n}}",
            literal(&url),
        );
        let arguments = format!(
            "{{ \"key\": {}, \"content\": {} }}",
            literal(self.key),
            literal(MESSAGE),
        );
        ProtocolAccess {
            name: "MCP",
            address: url,
            note: Some(format!(
                "The thread is the resource thread://{}.",
                path_segment(self.key)
            )),
            samples: vec![
                sample("Configuration of a client", code),
                sample("Arguments of the tool run", arguments),
            ],
        }
    }

    fn command_line(&self) -> ProtocolAccess {
        let (key, server) = (shell_word(self.key), shell_word(self.base));
        let code = format!(
            "loomline run {} --thread={key} --server={server}\n\
             loomline tail --server={server} -- {key}\n\
             loomline export --thread={key} --server={server}",
            shell_word(MESSAGE),
        );
        ProtocolAccess {
            name: "Command line",
            address: self.base.to_owned(),
            note: None,
            samples: vec![sample("Send, follow, export", code)],
        }
    }

    /// A `GET` with `curl`.
    fn curl<'s>(&self, url: &'s str) -> CurlSample<'s> {
        CurlSample {
            url,
            is_stream: false,
            needs_key: self.needs_key,
            headers: &[],
            body: None,
        }
    }
}

fn sample(title: &'static str, code: String) -> CodeSample {
    CodeSample { title, code }
}
