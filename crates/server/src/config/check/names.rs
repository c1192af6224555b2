//! The names of an agent's tools.

use super::Checker;
use crate::config::{Config, ConfigError, ToolRef};
use crate::tools;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use upp::ToolChoice;

/// Maximum length of a tool's name that all providers accept, in bytes.
const NAME_BYTES: usize = 64;

/// The tools that an agent may call, as far as they are known.
pub(super) struct Names<'a> {
    checker: &'a Checker<'a>,
    config: &'a Config,
    tools: Vec<ToolRef>,
    /// The tool names that the model sees, and whether the client executes the tool.
    shown: BTreeMap<String, bool>,
}

impl<'a> Names<'a> {
    pub(super) fn new(checker: &'a Checker<'a>, config: &'a Config) -> Self {
        Self {
            checker,
            config,
            tools: Vec::new(),
            shown: BTreeMap::new(),
        }
    }

    pub(super) fn into_tools(self) -> Vec<ToolRef> {
        self.tools
    }

    /// Takes an entry of `tools`.
    pub(super) fn tool(&mut self, place: &Spanned<String>) -> Result<(), ConfigError> {
        let tool = ToolRef::parse(place.get_ref());
        if let ToolRef::Named(_) = &tool {
            let names = tools::names(&self.config.tools).collect::<Vec<_>>();
            self.checker.known("tool", place, &names)?;
        } else {
            self.of_server(place, &tool)?;
        }
        if self.covers(&tool) {
            return Err(self
                .checker
                .wrong(place, format!("{tool} is in the list already")));
        }
        if let ToolRef::Server(server) = &tool {
            let one = self.tools.iter().find(|it| it.server() == Some(server));
            if let Some(one) = one {
                let message = format!("{one} is in the list already, expected it or all tools");
                return Err(self.checker.wrong(place, message));
            }
        }
        if let Some(name) = self.shown_as(&tool) {
            self.show(place, name, false)?;
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Adds the name of a tool that is declared in the agent.
    pub(super) fn own(&mut self, name: &Spanned<String>) -> Result<(), ConfigError> {
        self.declared(name, false)
    }

    /// Adds the name of a tool that the client executes.
    pub(super) fn external(&mut self, name: &Spanned<String>) -> Result<(), ConfigError> {
        self.declared(name, true)
    }

    fn declared(&mut self, name: &Spanned<String>, external: bool) -> Result<(), ConfigError> {
        let text = name.get_ref();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(fits) {
            let message = format!(
                "{text:?} is no name of a tool, expected 1 to {NAME_BYTES} letters, digits, '-' and '_'"
            );
            return Err(self.checker.wrong(name, message));
        }
        self.show(name, text.clone(), external)
    }

    fn show(
        &mut self,
        place: &Spanned<String>,
        name: String,
        external: bool,
    ) -> Result<(), ConfigError> {
        if self.shown.contains_key(&name) {
            let message = format!("two tools of this agent are named {name:?}");
            return Err(self.checker.wrong(place, message));
        }
        self.shown.insert(name, external);
        Ok(())
    }

    /// Refuses an unknown server, and a tool that the server's lists leave out.
    fn of_server(&self, place: &Spanned<String>, tool: &ToolRef) -> Result<(), ConfigError> {
        let Some(name) = tool.server() else {
            return Ok(());
        };
        let name = Spanned::new(place.span(), name.to_owned());
        let servers = &self.config.mcp;
        self.checker.known("MCP server", &name, servers.keys())?;
        let (ToolRef::OfServer { tool, .. }, Some(server)) = (tool, servers.get(name.get_ref()))
        else {
            return Ok(());
        };
        if tool.is_empty() {
            let message = "the tool has no name, expected mcp:SERVER or mcp:SERVER/TOOL";
            return Err(self.checker.wrong(place, message));
        }
        let allowed = server
            .allow
            .as_ref()
            .is_none_or(|names| names.contains(tool));
        if !allowed || server.deny.contains(tool) {
            let message = format!(
                "allow and deny of the MCP server {:?} leave out the tool {tool:?}",
                name.get_ref()
            );
            return Err(self.checker.wrong(place, message));
        }
        Ok(())
    }

    /// Whether the agent's list has this tool.
    fn covers(&self, tool: &ToolRef) -> bool {
        let all = tool.server().map(|name| ToolRef::Server(name.to_owned()));
        self.tools
            .iter()
            .any(|it| it == tool || Some(it) == all.as_ref())
    }

    /// The tool's name for the model; none if the reference means several tools.
    fn shown_as(&self, tool: &ToolRef) -> Option<String> {
        match tool {
            ToolRef::Named(name) => Some(name.clone()),
            ToolRef::Server(_) => None,
            ToolRef::OfServer { server, tool } => {
                let prefix = self.config.mcp.get(server).map(|it| it.prefix.as_str());
                Some(format!("{}{tool}", prefix.unwrap_or_default()))
            }
        }
    }

    /// Refuses a tool that the agent does not have. Names of tools in the configuration have no `mcp:`.
    fn had(&self, place: &Spanned<String>, tool: &ToolRef) -> Result<(), ConfigError> {
        let has = match tool {
            ToolRef::Named(name) => self.shown.contains_key(name),
            ToolRef::Server(_) | ToolRef::OfServer { .. } => {
                self.of_server(place, tool)?;
                self.covers(tool)
            }
        };
        if has {
            return Ok(());
        }
        let listed = self.tools.iter().map(ToString::to_string);
        let mut known: BTreeSet<String> = listed.collect();
        known.extend(self.shown.keys().cloned());
        self.checker.known("tool of this agent", place, &known)
    }

    /// The tools whose calls need an approval.
    pub(super) fn approvals(
        &self,
        places: &[Spanned<String>],
    ) -> Result<BTreeSet<ToolRef>, ConfigError> {
        let mut approvals = BTreeSet::new();
        for place in places {
            let tool = ToolRef::parse(place.get_ref());
            self.had(place, &tool)?;
            if self.shown.get(place.get_ref()) == Some(&true) {
                let message = "a client runs this tool, so the client requests the approval";
                return Err(self.checker.wrong(place, message));
            }
            approvals.insert(tool);
        }
        Ok(approvals)
    }

    /// The tool choice: whether a tool must be called, and which.
    pub(super) fn tool_choice(
        &self,
        place: &Spanned<toml::Value>,
    ) -> Result<ToolChoice, ConfigError> {
        let expected =
            "expected \"auto\", \"none\", \"required\" or a table such as { tool = \"compute\" }";
        match place.get_ref().as_str() {
            Some("auto") => return Ok(ToolChoice::Auto),
            Some("none") => return Ok(ToolChoice::None),
            Some("required") => return Ok(ToolChoice::Required),
            Some(_) | None => {}
        }
        let table = place.get_ref().as_table();
        let tool = table.filter(|table| table.len() == 1);
        let tool = tool.and_then(|table| table.get("tool")?.as_str());
        let Some(text) = tool else {
            return Err(self
                .checker
                .wrong(place, format!("this is no tool choice, {expected}")));
        };
        let tool = ToolRef::parse(text);
        self.had(&Spanned::new(place.span(), text.to_owned()), &tool)?;
        match self.shown_as(&tool) {
            Some(name) => Ok(ToolChoice::Tool(name)),
            None => Err(self
                .checker
                .wrong(place, "this is more than one tool, expected one")),
        }
    }
}
