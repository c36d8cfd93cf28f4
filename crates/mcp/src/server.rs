//! The server: which call is which tool, and how answers go out.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    InputResponses, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::answer::{Answer, Mistake};
use crate::arguments::Arguments;
use crate::boxes::Boxes;
use crate::changes::{self, Outcome};
use crate::options::Options;
use crate::progress::Progress;
use crate::{catalog, files, resources, run, states, values};

/// How long a request may be; a longer one is dropped.
const LONGEST_LINE: usize = 16 << 20;
/// How many calls may be in progress; more are answered with a sentence.
const MOST_CALLS: usize = 64;

/// Which tools count as runs.
const RUNS: [&str; 3] = ["run_command", "run_python", "search_files"];

const INSTRUCTIONS: &str = "Sandboxes with a bash-compatible shell, the usual Unix tools, Python and files in memory. Nothing in \
    them reaches the host unless a directory was mounted. Tools work on the sandbox 'main' unless they are given another \
    by name; its state persists from call to call.";

/// Why a server could not go on.
#[derive(Debug)]
pub struct ServeError(String);

impl Display for ServeError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// Serves one client until its input ends, then destroys all sandboxes.
pub async fn serve<R, W>(options: Options, input: R, output: W) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = Arc::new(Server::new(options));
    let transport = AsyncRwTransport::new(input, output).with_max_line_length(LONGEST_LINE);
    let served = match Arc::clone(&server).serve(transport).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|lost| ServeError(lost.to_string())),
        // A client that goes away without a word is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError(error.to_string())),
    };
    server.boxes.clear().await;
    served
}

pub(crate) struct Server {
    options: Arc<Options>,
    pub(crate) boxes: Boxes,
    tools: Vec<Tool>,
    calls: Semaphore,
    /// How many outputs were kept in files.
    outputs: AtomicU64,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) options: &'a Options,
    pub(crate) boxes: &'a Boxes,
    pub(crate) context: &'a RequestContext<RoleServer>,
    pub(crate) progress: Progress,
    /// Replies to a question that an earlier call was answered with, and what that call was about.
    pub(crate) replies: Option<InputResponses>,
    pub(crate) state: Option<String>,
    outputs: &'a AtomicU64,
}

impl Call<'_> {
    /// Returns a number for an output that is kept.
    pub(crate) fn next_output(&self) -> u64 {
        self.outputs.fetch_add(1, Ordering::Relaxed)
    }
}

impl Server {
    pub(crate) fn new(options: Options) -> Server {
        let options = Arc::new(options);
        Server {
            tools: catalog::tools(&options),
            boxes: Boxes::new(Arc::clone(&options)),
            options,
            calls: Semaphore::new(MOST_CALLS),
            outputs: AtomicU64::new(0),
        }
    }

    async fn call(&self, call: &Call<'_>, name: &str, arguments: Arguments) -> Result<Outcome, Mistake> {
        if !self.tools.iter().any(|tool| tool.name == name) {
            let shown: String = name.chars().take(80).collect();
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
            let hint = wardian::did_you_mean(name, names.iter().copied());
            return Err(Mistake::new(format!(
                "there is no tool '{shown}'{hint}; there are {}",
                names.join(", ")
            )));
        }
        if let Some(gate) = self.options.gate.as_ref().filter(|_| RUNS.contains(&name)) {
            gate.run().map_err(Mistake::new)?;
        }
        let answer = match name {
            "run_command" => run::command(call, arguments).await,
            "run_python" => run::python(call, arguments).await,
            "read_file" => files::read(call, arguments).await,
            "write_file" => files::write(call, arguments).await,
            "edit_file" => files::edit(call, arguments).await,
            "list_directory" => files::list(call, arguments).await,
            "search_files" => files::search(call, arguments).await,
            "create_sandbox" => values::create(call, arguments).await,
            "list_sandboxes" => values::list(call, arguments),
            "destroy_sandbox" => values::destroy(call, arguments).await,
            "fork_sandbox" => values::fork(call, arguments).await,
            "snapshot" => values::snapshot(call, arguments).await,
            "restore" => values::restore(call, arguments).await,
            "export_state" => states::export(call, arguments).await,
            "import_state" => states::import(call, arguments).await,
            "apply_changes" => return changes::apply(call, arguments).await,
            _ => Err(Mistake::new("this tool is not there")),
        };
        answer.map(Outcome::Answer)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("wardian", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_permit) = self.calls.try_acquire() else {
            return Ok(mistake(&Mistake::new(format!(
                "{MOST_CALLS} calls are in progress; wait for one of them"
            )))
            .into());
        };
        let call = Call {
            options: &self.options,
            boxes: &self.boxes,
            context: &context,
            progress: Progress::of(&context),
            replies: request.input_responses,
            state: request.request_state,
            outputs: &self.outputs,
        };
        Ok(match self.call(&call, &request.name, Arguments::new(request.arguments)).await {
            Ok(Outcome::Answer(answer)) => result(answer).into(),
            Ok(Outcome::Question(question)) => question.into(),
            Err(told) => mistake(&told).into(),
        })
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.boxes).await))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resources::read(&self.boxes, &request.uri).await {
            Ok(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            Err(told) => Err(ErrorData::resource_not_found(told.sentence().to_owned(), None)),
        }
    }
}

fn result(answer: Answer) -> CallToolResult {
    let mut content = vec![ContentBlock::text(answer.text)];
    content.extend(answer.images.into_iter().map(|png| ContentBlock::image(png, "image/png")));
    let mut result =
        if answer.failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(answer.data);
    result
}

fn mistake(told: &Mistake) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("error: {}", told.sentence()))])
}
