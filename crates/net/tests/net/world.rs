//! A gateway, a guest's end of its connections, and a resolver that lies.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use wardian_net::{
    BoxFuture, ConnectError, Destination, Ending, Gateway, Host, NetworkPolicy, Options, Resolve, TlsRequest,
};

/// Says for a name what the test wants, each answer once and the last one for ever.
#[derive(Default)]
pub struct Liar {
    pub answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub asked: Mutex<Vec<String>>,
}

impl Resolve for Liar {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.asked.lock().push(name.to_owned());
            let mut answers = self.answers.lock();
            let Some(list) = answers.get_mut(name) else { return Err(io::ErrorKind::NotFound.into()) };
            Ok(if list.len() > 1 { list.remove(0) } else { list[0].clone() })
        })
    }
}

pub type Events = Arc<Mutex<Vec<(&'static str, Map<String, Value>)>>>;

/// A gateway with a resolver and a log.
pub struct World {
    pub gateway: Gateway,
    pub liar: Arc<Liar>,
    pub events: Events,
}

pub fn local(policy: NetworkPolicy, port: u16) -> NetworkPolicy {
    let mut policy = policy;
    if policy.allowed_hosts.is_empty() {
        policy.allowed_hosts = vec!["*.test".into()];
    }
    policy.http_ports.push(port);
    policy.allow_private.push("127.0.0.1/32".parse().expect("a network"));
    policy
}

impl World {
    /// Every name that ends in `.test` is this machine.
    pub fn new(policy: NetworkPolicy) -> World {
        World::with(policy, |_| ())
    }

    pub fn with(policy: NetworkPolicy, change: impl FnOnce(&mut Options)) -> World {
        let liar = Arc::new(Liar::default());
        for name in ["api.test", "other.test", "x.test"] {
            liar.answers.lock().insert(name.into(), vec![vec!["127.0.0.1".parse().expect("an address")]]);
        }
        let events = Events::default();
        let log = events.clone();
        let mut options = Options { resolver: liar.clone(), ..Options::default() };
        options.audit = Some(Arc::new(move |event, data| log.lock().push((event, data))));
        change(&mut options);
        World { gateway: Gateway::new(policy, options).expect("a policy"), liar, events }
    }

    pub async fn connect(&self, host: &str, port: u16) -> Result<Guest, ConnectError> {
        let host = Host::parse(host).unwrap_or_else(|_| Host::Name(host.to_owned()));
        let connection = self.gateway.connect(&Destination { host, port }).await?;
        let (stream, other) = tokio::io::duplex(64 << 10);
        Ok(Guest { stream, served: tokio::spawn(connection.serve(other)) })
    }

    /// Connects a guest that has left, for the gateway, when it is notified.
    pub async fn connect_until(&self, host: &str, port: u16) -> Result<(Guest, Arc<Notify>), ConnectError> {
        let host = Host::parse(host).unwrap_or_else(|_| Host::Name(host.to_owned()));
        let connection = self.gateway.connect(&Destination { host, port }).await?;
        let (stream, other) = tokio::io::duplex(64 << 10);
        let left = Arc::new(Notify::new());
        let deserted = left.clone();
        let served = connection.serve_while(other, async move { deserted.notified().await });
        Ok((Guest { stream, served: tokio::spawn(served) }, left))
    }

    /// Sends bytes on one connection and returns all that comes back.
    pub async fn ask(&self, host: &str, port: u16, bytes: &str) -> String {
        let mut guest = self.connect(host, port).await.expect("a connection");
        guest.send(bytes).await;
        guest.rest().await
    }

    pub fn named(&self, name: &str) -> Vec<Map<String, Value>> {
        self.events.lock().iter().filter(|(event, _)| *event == name).map(|(_, data)| data.clone()).collect()
    }
}

/// A guest's end of a connection.
pub struct Guest {
    pub stream: DuplexStream,
    pub served: JoinHandle<Ending>,
}

impl Guest {
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("the gateway reads");
    }

    /// Reads until a text has come.
    pub async fn until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(text) {
            let mut byte = [0; 1];
            let length = soon(self.stream.read(&mut byte)).await.expect("readable");
            assert!(length > 0, "'{text}' never came: {}", String::from_utf8_lossy(&all));
            all.push(byte[0]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    pub async fn bytes(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let _ = soon(self.stream.read_to_end(&mut all)).await;
        all
    }

    pub async fn rest(&mut self) -> String {
        String::from_utf8_lossy(&self.bytes().await).into_owned()
    }

    /// Asks for TLS and returns the answer.
    pub async fn tls(&mut self, name: &str, verify: bool, alpn: &[&str]) -> String {
        let alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
        self.send(TlsRequest { server_name: name.into(), verify, alpn }.to_bytes()).await;
        let mut header = [0; 10];
        soon(self.stream.read_exact(&mut header)).await.expect("an answer");
        assert_eq!(&header[..6], b"\0WTLS\x01");
        let length = u32::from_be_bytes(header[6..].try_into().expect("four bytes")) as usize;
        let mut body = vec![0; length];
        soon(self.stream.read_exact(&mut body)).await.expect("an answer");
        String::from_utf8(body).expect("text")
    }

    pub async fn ending(self) -> Ending {
        drop(self.stream);
        soon(self.served).await.expect("it ends")
    }
}

/// What takes that long never comes.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: api.test\r\n\r\n")
}

pub fn last(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: api.test\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n")
}
