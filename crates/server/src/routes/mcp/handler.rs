//! The handler of MCP calls.

use super::resources::{self, Watched};
use super::tools::Tool;
use crate::auth::{Caller, Scope};
use crate::error::{ApiError, mcp};
use crate::state::Api;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, ConstString as _,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, InitializeResultMethod, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult,
    ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscriptionFilter, SubscriptionsListenRequestMethod, SubscriptionsListenRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ServerHandler, model};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Instructions for models about the tools.
const INSTRUCTIONS: &str = "Threads are conversations with this server's agents, each known by its key. `run` says something on a thread and waits for the agent's answer; `post_message` does not wait. Where a run comes back as `waiting`, its `pending` calls are answered with `answer`. `read_thread` and the resources read what was said.";

/// The parameters of a tool call.
#[derive(Default, Deserialize)]
struct Called<'a> {
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

/// Answers one call of one caller.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// The parameters of the call.
    params: Option<Arc<RawValue>>,
    /// The threads to watch, if the call is a subscription.
    pub(super) watched: Arc<[Watched]>,
    /// Cancelled when the client cancels the call.
    pub(super) stopped: CancellationToken,
}

impl Handler {
    pub(super) fn new(
        api: Api,
        caller: Caller,
        params: Option<Arc<RawValue>>,
        stopped: CancellationToken,
    ) -> Self {
        Self {
            api,
            caller,
            params,
            watched: Arc::default(),
            stopped,
        }
    }

    /// The arguments of the called tool; pointers in errors are relative to them.
    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        crate::body::typed(
            self.argument_text(),
            self.api.app().config().server.max_depth,
        )
    }

    /// The arguments of the called tool, as JSON text.
    pub(super) fn argument_text(&self) -> &str {
        let params: Called<'_> = serde_json::from_str(self.text()).unwrap_or_default();
        params.arguments.map_or("{}", RawValue::get)
    }

    /// The parameters of the call; pointers in errors are relative to them.
    fn params<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        crate::body::typed(self.text(), self.api.app().config().server.max_depth)
    }

    /// The parameters, as JSON text.
    fn text(&self) -> &str {
        self.params.as_deref().map_or("{}", RawValue::get)
    }

    /// The cursor of the requested page. Refuses a cursor of another type, which the SDK ignores.
    fn cursor(&self) -> Result<Option<String>, ErrorData> {
        let page = self.params::<PaginatedRequestParams>();
        page.map(|page| page.cursor)
            .map_err(|error| mcp::error(&error))
    }

    /// Looks up the threads of a subscription in advance, because the SDK's callback is not async.
    pub(super) async fn find_watched(&mut self) -> Result<(), ApiError> {
        // What is wrong with the parameters is told by the SDK's way.
        if let Ok(asked) = self.params::<SubscriptionsListenRequestParams>()
            && self.check_read().is_ok()
        {
            self.watched = resources::watched(self, &asked.notifications).await?.into();
        }
        Ok(())
    }

    /// The error of a call that the SDK could not parse: the method is unknown, or its parameters are
    /// invalid.
    fn misread(&self, method: &str) -> ErrorData {
        let read = match method {
            InitializeResultMethod::VALUE => self.params::<InitializeRequestParams>().map(drop),
            CallToolRequestMethod::VALUE => self.params::<CallToolRequestParams>().map(drop),
            ReadResourceRequestMethod::VALUE => {
                self.params::<ReadResourceRequestParams>().map(drop)
            }
            SubscriptionsListenRequestMethod::VALUE => {
                self.params::<SubscriptionsListenRequestParams>().map(drop)
            }
            ListToolsRequestMethod::VALUE
            | ListResourcesRequestMethod::VALUE
            | ListResourceTemplatesRequestMethod::VALUE => {
                self.params::<PaginatedRequestParams>().map(drop)
            }
            _ => return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
        };
        match read {
            Err(error) => mcp::error(&error),
            Ok(()) => ErrorData::invalid_params("these are no parameters of the method", None),
        }
    }

    /// The current tools.
    fn tools(&self) -> Vec<model::Tool> {
        let agents = self.api.app().agents();
        let agents: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let tools = Tool::ALL.into_iter().map(|tool| tool.definition(&agents));
        tools.collect()
    }

    /// An error if the caller may not read.
    fn check_read(&self) -> Result<(), ErrorData> {
        let checked = self.caller.check_scope(Scope::Read);
        checked.map_err(|error| mcp::error(&error))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("loomline", env!("CARGO_PKG_VERSION")).with_title("Loomline"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Who begins so would wait for updates on a stream of its session, which there is none of.
        if let Some(resources) = &mut result.capabilities.resources {
            resources.subscribe = None;
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<model::Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.cursor()?;
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            let what = format!("there is no tool {:?}", request.name);
            return Err(ErrorData::invalid_params(what, None));
        };
        let called = tool.call(self, &context).await;
        let result = called.unwrap_or_else(|error| mcp::tool_error(&error));
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.check_read()?;
        let listed = resources::list(self, self.cursor()?).await;
        listed.map_err(|error| mcp::error(&error))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.cursor()?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.check_read()?;
        let read = resources::read(self, &request.uri).await;
        read.map(Into::into).map_err(|error| mcp::error(&error))
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(resources::accepted(&self.watched))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.check_read()?;
        let listened = resources::listen(self, &subscription).await;
        listened.map_err(|error| mcp::error(&error))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(self.misread(&request.method))
    }
}
