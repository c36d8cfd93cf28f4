//! `wardian serve`: sandboxes for other programs.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use wardian::HostRoots;
use wardian_server::{
    AccessLog, ClientNetwork, Http, MountRoots, Options, PortLimits, Server, Socket, Tokens,
};

use crate::durable::StoreFlags;
use crate::mount::{self, Root};
use crate::out::{Checked, OutputError, Stdout, remark};
use crate::{audit, size, tools};

/// Where the token is found if it is not in a file.
const TOKEN: &str = "WARDIAN_HTTP_TOKEN";

/// Serve sandboxes to other programs over JSON-RPC 2.0, one message per line; health and native tools over HTTP.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("where").required(true).multiple(true).args(["stdio", "socket", "http"]),
    after_help = "\
Examples:
  wardian serve --stdio                       # one client: the program that started it
  wardian serve --socket ~/.wardian.sock      # many clients of this user, each with its own sandboxes
  wardian serve --socket /run/wardian/socket --http 8080
                                              # the same, watched: curl localhost:8080/health
  wardian serve --http 8080 --tools ~/project # native tools in that directory: POST /tools/run
  wardian serve --stdio --allow-mount ~/src   # its sandboxes may mount ~/src and what is below it"
)]
pub(crate) struct Arguments {
    /// Serve one client on standard input and output; exit when the input ends.
    #[arg(long, conflicts_with = "socket")]
    stdio: bool,
    /// Listen on a Unix socket that only this user can open.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve HTTP: sandboxes by REST (/v1), WebSocket (/rpc), MCP (/mcp) and for E2B's SDKs; /health, /ready, /metrics; with
    /// --tools, /tools/run. A bare port listens on 127.0.0.1.
    #[arg(long, value_name = "[HOST:]PORT")]
    http: Option<String>,
    /// File with the bearer token HTTP clients must send, for all but a bare /health. Required unless listening on
    /// localhost. Default: $WARDIAN_HTTP_TOKEN.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// TOML file with several bearer tokens: names, tenants, quotas, expiry, and the origins of pages that may use the server.
    /// It is read again on SIGHUP. See docs/deployment.md.
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "token_file")]
    tokens: Option<PathBuf>,
    /// Append a line of JSON to this file for each HTTP request. It is opened again on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "http")]
    access_log: Option<PathBuf>,
    /// Offer native tools in this directory, over HTTP, as `wardian tools run` would. WARDIAN_TOOLS_* configures the
    /// rest; WARDIAN_TOOLS_ENABLED=false overrides this.
    #[arg(long, value_name = "DIR", requires = "http")]
    tools: Option<PathBuf>,
    /// Directory for saved sandbox states.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Maximum size of all states in it together, in bytes.
    #[arg(long, value_name = "BYTES", requires = "state_dir", default_value_t = Options::default().state_bytes)]
    state_bytes: u64,
    /// Save sandboxes with names in the store in this directory, or in s3://BUCKET/PREFIX with the credentials in AWS_….
    #[arg(long, value_name = "DIR|URL")]
    store: Option<PathBuf>,
    /// The directory for what is not uploaded to s3://… yet, and for copies of what is; by default in Wardian's state directory.
    #[arg(long, value_name = "DIR", requires = "store")]
    store_local: Option<PathBuf>,
    /// A file with the key of an encrypted store.
    #[arg(long, value_name = "FILE", requires = "store")]
    store_key: Option<PathBuf>,
    /// Sandboxes of the store leave memory after so many seconds without a call, and come back with the next one. A client can
    /// say otherwise for each of its own.
    #[arg(long, value_name = "N", requires = "store", value_parser = clap::value_parser!(u64).range(1..))]
    idle_seconds: Option<u64>,
    /// Memory that sandboxes of the store may take together, files included (512M, 4G): beyond that the longest unused leave
    /// memory until their next call.
    #[arg(long, value_name = "SIZE", requires = "store", value_parser = size::parse)]
    awake_memory: Option<u64>,
    /// Record what all sandboxes do in this log: commands, connections, requests, refusals. It is hash-chained:
    /// `wardian audit verify` tells whether anything was changed.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Maximum number of sandboxes of all clients together, not counting hibernated ones (--idle-seconds).
    #[arg(long, value_name = "N", default_value_t = Options::default().max_sandboxes)]
    max_sandboxes: usize,
    /// What clients of the socket and of HTTP may grant their sandboxes: nothing, public hosts, or private networks and files
    /// of this machine as well. The client of --stdio may grant everything.
    #[arg(long, value_name = "WHAT", default_value = "public")]
    network: GrantableNetwork,
    /// Let clients mount directories of this machine that are below DIR (`create` with `hostMounts`), only for reading with :ro;
    /// may be given several times. Not for those who show a token of --tokens.
    #[arg(long, value_name = "DIR[:ro]", value_parser = mount::parse_root)]
    allow_mount: Vec<Root>,
    /// The same for those who show a token of --tokens, whichever it is.
    #[arg(long, value_name = "DIR[:ro]", requires = "tokens", value_parser = mount::parse_root)]
    allow_tenant_mount: Vec<Root>,
    /// Maximum number of clients of the socket at once; further ones get an error. By default 1024, or a quarter of the
    /// limit of open files if that is less.
    #[arg(long, value_name = "N")]
    max_clients: Option<usize>,
}

/// What `--network` can be.
#[derive(Clone, Copy, clap::ValueEnum)]
enum GrantableNetwork {
    Off,
    Public,
    Full,
}

/// Serves to the end.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(arguments));
    // A thread may wait for standard input that never comes.
    runtime.shutdown_background();
    served.map(|()| 0)
}

/// Everything that can be wrong is found before it says that it listens.
async fn serve(arguments: Arguments) -> Result<()> {
    // Not by clap, which does not ask for what conflicts with something else.
    if arguments.max_clients.is_some() && arguments.socket.is_none() {
        bail!("--max-clients needs --socket");
    }
    let default = Options::default();
    let options = Options {
        state_dir: arguments.state_dir.clone(),
        state_bytes: arguments.state_bytes,
        store: match &arguments.store {
            Some(place) => {
                let (local, key) = (arguments.store_local.clone(), arguments.store_key.clone());
                Some(StoreFlags::of(place.clone(), local, key).open()?)
            }
            None => None,
        },
        idle: arguments.idle_seconds.map(Duration::from_secs),
        awake_bytes: arguments.awake_memory,
        network: match arguments.network {
            GrantableNetwork::Off => ClientNetwork::Off,
            GrantableNetwork::Public => ClientNetwork::Public,
            GrantableNetwork::Full => ClientNetwork::Full,
        },
        mounts: MountRoots {
            of_others: roots(&arguments.allow_mount)?,
            of_tenants: roots(&arguments.allow_tenant_mount)?,
        },
        audit: arguments.audit.as_deref().map(audit::open).transpose()?,
        max_sandboxes: arguments.max_sandboxes,
        max_clients: arguments.max_clients.unwrap_or(default.max_clients),
    };
    options.check()?;
    let server = Server::new(options);
    let end = End::on_signals()?;
    let http = match &arguments.http {
        Some(place) => Some(listen(place, offered(&arguments)?).await?),
        None => None,
    };
    let socket = arguments.socket.as_deref().map(Socket::bind).transpose()?;
    let client = arguments.stdio.then(Stdout::asynchronous).transpose()?;
    if let Some((_, http)) = &http {
        heed_hangups(http)?;
    }
    if let Some((listener, _)) = &http {
        // A port of 0 is one that was free.
        remark!("wardian: listening on http://{}", listener.local_addr()?);
    }
    if let Some(path) = &arguments.socket {
        remark!("wardian: listening on {}", path.display());
    }
    let (client, failure) = client.map(Checked::new).unzip();
    let lines = async {
        match (socket, client) {
            (Some(socket), _) => server.serve_clients(socket, end.comes()).await,
            (None, Some(stdout)) => server.serve_until(tokio::io::stdin(), stdout, end.comes()).await,
            (None, None) => end.comes().await,
        }
        end.is_here();
        anyhow::Ok(())
    };
    let pages = async {
        if let Some((listener, http)) = http {
            server.serve_http(listener, http, end.comes()).await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(lines, pages)?;
    match failure.and_then(|failure| failure.take()) {
        // A client that is gone ends the server, as the end of its input does.
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputError::stdout(error).into()),
        _ => Ok(()),
    }
}

/// Opens the directories from which clients may mount.
fn roots(named: &[Root]) -> Result<HostRoots> {
    named.iter().try_fold(HostRoots::default(), |roots, Root { host, writable }| {
        roots.with(host, *writable).with_context(|| format!("cannot allow mounts below {}", host.display()))
    })
}

/// The end of everything: a signal, or the only client left.
struct End(watch::Sender<bool>);

impl End {
    fn on_signals() -> Result<End> {
        let end = End(watch::Sender::new(false));
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
        let sender = end.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            sender.send_replace(true);
        });
        Ok(end)
    }

    fn is_here(&self) {
        self.0.send_replace(true);
    }

    fn comes(&self) -> impl Future<Output = ()> + use<> {
        let mut end = self.0.subscribe();
        async move {
            // Its sender is kept as long as anybody waits.
            let _ = end.wait_for(|end| *end).await;
        }
    }
}

/// What is offered over HTTP.
fn offered(arguments: &Arguments) -> Result<Http> {
    let token = match &arguments.token_file {
        Some(file) => Some(read_token(file)?),
        None => std::env::var(TOKEN).ok(),
    };
    let tokens = arguments.tokens.as_deref().map(Tokens::open).transpose()?;
    let log = |path: &PathBuf| {
        AccessLog::open(path).with_context(|| format!("cannot write the access log {}", path.display()))
    };
    let access_log = arguments.access_log.as_ref().map(log).transpose()?;
    let door = arguments.tools.as_deref().map(|jail| tools::door_to(jail, false)).transpose()?;
    Ok(Http { token, tokens, access_log, door, ports: PortLimits::default() })
}

/// Reads the tokens again, and begins a new access log, on SIGHUP. Without either that signal ends the server, as any program.
fn heed_hangups(http: &Http) -> Result<()> {
    let (tokens, log) = (http.tokens.clone(), http.access_log.clone());
    if tokens.is_none() && log.is_none() {
        return Ok(());
    }
    let mut hangups = signal(SignalKind::hangup()).context("cannot wait for signals")?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            if let Some(log) = &log {
                log.reopen();
            }
            match tokens.as_ref().map(|tokens| (tokens.reload(), tokens.count())) {
                Some((Err(error), count)) => remark!("wardian: the {count} tokens stay as they are: {error}"),
                Some((Ok(()), count)) => remark!("wardian: {count} tokens are read"),
                None => {}
            }
        }
    });
    Ok(())
}

fn read_token(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.trim_end().to_owned())
}

/// Opens a place for HTTP, if that may be served there.
async fn listen(place: &str, http: Http) -> Result<(TcpListener, Http)> {
    let address = address(place)?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    http.check(listener.local_addr()?)?;
    Ok((listener, http))
}

fn address(place: &str) -> Result<SocketAddr> {
    if let Ok(port) = place.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let mut found = place.to_socket_addrs().with_context(|| format!("invalid listen address '{place}'"))?;
    found.next().with_context(|| format!("cannot resolve '{place}'"))
}
