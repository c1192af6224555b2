//! Agent cards.

use super::VERSION;
use crate::request::MediaKind;
use serde_json::{Value, json};

/// The URLs at which clients reach an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// The URL of JSON-RPC.
    pub json_rpc: String,
    /// The base URL of the other HTTP binding's paths.
    pub http_json: String,
}

/// The published data of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version of the server.
    pub version: &'a str,
    /// Whether a key is needed.
    pub needs_key: bool,
    /// The names of its tools; only clients with a key receive them.
    pub tools: Option<&'a [String]>,
}

impl AgentCard<'_> {
    /// The card.
    pub fn to_json(&self, interfaces: &Interfaces) -> Value {
        let name = self.name;
        let interface = |url: &str, binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": VERSION});
        let mut skills = vec![json!({
            "id": "converse", "name": "Converse",
            "description": format!("Says something to the agent {name:?} and gets its answer; a context keeps the conversation."),
            "tags": ["conversation"],
        })];
        for tool in self.tools.unwrap_or_default() {
            skills.push(json!({
                "id": format!("tool:{tool}"), "name": tool,
                "description": format!("The agent may use the tool {tool:?}."),
                "tags": ["tool"],
            }));
        }
        // Data is said as JSON.
        let modes: Vec<&str> = ["text/plain", "application/json"]
            .into_iter()
            .chain(MediaKind::READ)
            .collect();
        let mut card = json!({
            "name": name,
            "description": format!("The agent {name:?}, on a Loomline server."),
            "version": self.version,
            "supportedInterfaces": [
                interface(&interfaces.json_rpc, "JSONRPC"),
                interface(&interfaces.http_json, "HTTP+JSON"),
            ],
            "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": true},
            "defaultInputModes": modes,
            "defaultOutputModes": ["text/plain"],
            "skills": skills,
        });
        if self.needs_key {
            card["securitySchemes"] =
                json!({"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
            card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
        }
        card
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_a_key_is_told_of_the_tools() {
        let interfaces = Interfaces {
            json_rpc: "https://a.example/a2a".into(),
            http_json: "https://a.example/a2a/v1".into(),
        };
        let tools = ["search".to_owned()];
        let mut card = AgentCard {
            name: "demo",
            version: "1",
            needs_key: true,
            tools: None,
        };
        let public = card.to_json(&interfaces);
        assert!(!public.to_string().contains("search"));
        assert_eq!(
            public["supportedInterfaces"][0]["protocolBinding"],
            "JSONRPC"
        );
        assert!(public["securityRequirements"].is_array());
        (card.tools, card.needs_key) = (Some(tools.as_slice()), false);
        let extended = card.to_json(&interfaces);
        assert_eq!(extended["skills"][1]["id"], "tool:search");
        assert!(extended.get("securitySchemes").is_none());
    }
}
