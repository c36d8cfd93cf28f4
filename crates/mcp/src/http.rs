//! Streamable HTTP, for a server with many clients.
//!
//! Clients that begin a session (protocol versions before 2026-07-28) have sandboxes of their own, which end with it. Those that
//! do not share the sandboxes of their owner, which end when nobody has used them for a while.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::options::Options;
use crate::server::Server;

/// The longest request.
pub const LONGEST_REQUEST: usize = 4 << 20;
/// How many sessions an owner may have.
const SESSIONS: usize = 256;
/// How long a session, or the sandboxes of those without one, may be unused.
const UNUSED: Duration = Duration::from_secs(30 * 60);
/// Which requests are of a session.
const SESSION: &str = "mcp-session-id";

/// An answer.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Those who share a token, or a tenant.
pub struct Owner {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    common: Arc<Common>,
    stop: CancellationToken,
    /// Held while a session begins, so that there are never more than there may be.
    beginning: AsyncMutex<()>,
}

impl Debug for Owner {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Owner").finish_non_exhaustive()
    }
}

/// The sandboxes of those who have no session, and when they were used.
struct Common {
    server: Arc<Server>,
    calls: AtomicUsize,
    last: Mutex<Instant>,
}

impl Owner {
    /// Begins to serve. To be called within a runtime.
    pub fn new(options: Options) -> Owner {
        let common = Arc::new(Common {
            server: Arc::new(Server::new(options.clone())),
            calls: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        });
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(UNUSED);
        // Answers are not kept for clients that come again: nothing would bound how much that is.
        sessions.session_config.completed_cache_ttl = Duration::ZERO;
        let (sessions, stop) = (Arc::new(sessions), CancellationToken::new());
        // The caller has checked the host and the origin.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(LONGEST_REQUEST)
            .with_cancellation_token(stop.clone());
        let all = common.clone();
        let handler = move || {
            let own = OnceLock::new();
            Ok(Handler { options: options.clone(), own, common: all.clone() })
        };
        let service = StreamableHttpService::new(handler, sessions.clone(), config);
        tokio::spawn(clear_unused(Arc::downgrade(&common), stop.clone()));
        Owner { service, sessions, common, stop, beginning: AsyncMutex::default() }
    }

    /// Answers a request, of which everything has arrived.
    pub async fn answer(&self, request: Request<Bytes>) -> Answer {
        if !begins_session(&request) {
            return self.service.handle(request.map(Full::new)).await;
        }
        let _beginning = self.beginning.lock().await;
        if self.sessions.sessions.read().await.len() >= SESSIONS {
            let message = format!("at most {SESSIONS} sessions at once");
            let mut refused = Response::new(Full::new(Bytes::from(message)).boxed());
            *refused.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            return refused;
        }
        self.service.handle(request.map(Full::new)).await
    }

    /// Ends all sessions, and destroys all sandboxes.
    pub async fn end(&self) {
        self.stop.cancel();
        self.sessions.sessions.write().await.clear();
        self.common.server.boxes.clear().await;
    }
}

/// Whether a request may begin a session. `initialize` does, whichever version it names in whichever place; what cannot be read is
/// taken for one.
fn begins_session(request: &Request<Bytes>) -> bool {
    #[derive(Deserialize)]
    struct Called<'r> {
        #[serde(borrow)]
        method: Option<Cow<'r, str>>,
    }
    let is_initialize = || match serde_json::from_slice(request.body()) {
        Ok(Called { method: Some(method) }) => method == "initialize",
        Ok(Called { method: None }) => false,
        Err(_) => true,
    };
    *request.method() == Method::POST && is_initialize()
}

/// Destroys what nobody has used for long.
async fn clear_unused(common: Weak<Common>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(UNUSED / 30) => {}
        }
        let Some(common) = common.upgrade() else { return };
        if common.calls.load(Ordering::SeqCst) == 0 && common.last.lock().elapsed() > UNUSED {
            common.server.boxes.clear().await;
        }
    }
}

/// What answers the requests of one session, or one request without.
struct Handler {
    options: Options,
    own: OnceLock<Arc<Server>>,
    common: Arc<Common>,
}

/// The sandboxes of a session end with it.
impl Drop for Handler {
    fn drop(&mut self) {
        if let (Some(server), Ok(runtime)) = (self.own.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { server.boxes.clear().await });
        }
    }
}

/// The common sandboxes are in use.
struct InUse(Arc<Common>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last.lock() = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Handler {
    /// Returns the server that a request is for.
    fn of(&self, context: &RequestContext<RoleServer>) -> (Arc<Server>, Option<InUse>) {
        let parts = context.extensions.get::<Parts>();
        if parts.is_some_and(|parts| parts.headers.contains_key(SESSION)) {
            let own = self.own.get_or_init(|| Arc::new(Server::new(self.options.clone())));
            return (own.clone(), None);
        }
        self.common.calls.fetch_add(1, Ordering::SeqCst);
        (self.common.server.clone(), Some(InUse(self.common.clone())))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.common.server.get_info()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.common.server.list_tools(request, context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.common.server.get_tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (server, _in_use) = self.of(&context);
        server.call_tool(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (server, _in_use) = self.of(&context);
        server.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.common.server.list_resource_templates(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (server, _in_use) = self.of(&context);
        server.read_resource(request, context).await
    }
}
