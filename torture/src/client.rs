//! A connection to the server that tracks its requests: each must get exactly one response.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Longer than any request may take, however busy the machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One client.
pub(crate) struct Client {
    stream: UnixStream,
    book: Arc<Book>,
    reader: Option<JoinHandle<()>>,
    last: u64,
}

#[derive(Default)]
struct Book {
    pages: Mutex<Pages>,
    changed: Condvar,
}

#[derive(Default)]
struct Pages {
    /// Sent and not answered.
    open: HashMap<u64, String>,
    answers: HashMap<u64, Value>,
    /// What came and should not have.
    wrong: Vec<String>,
    closed: bool,
}

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn enter(&self, line: &str) {
        let mut pages = self.pages();
        match serde_json::from_str::<Value>(line) {
            Ok(message) if message.get("method").is_some() => {}
            Ok(message) => match message["id"].as_u64() {
                Some(id) if pages.open.remove(&id).is_some() => {
                    pages.answers.insert(id, message);
                }
                Some(id) => pages.wrong.push(format!("an answer to {id}, which is not open: {}", cut(line))),
                // An answer to garbage has no id.
                None => {}
            },
            Err(error) => pages.wrong.push(format!("{error}: {}", cut(line))),
        }
        self.changed.notify_all();
    }

    fn close(&self) {
        self.pages().closed = true;
        self.changed.notify_all();
    }
}

fn cut(line: &str) -> String {
    line.chars().take(200).collect()
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Result<Client> {
        let stream = UnixStream::connect(socket).context("the server does not let a client in")?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let book = Arc::<Book>::default();
        let (lines, shared) = (BufReader::new(stream.try_clone()?), book.clone());
        let reader = std::thread::spawn(move || {
            lines.lines().map_while(|line| line.ok()).for_each(|line| shared.enter(&line));
            shared.close();
        });
        Ok(Client { stream, book, reader: Some(reader), last: 0 })
    }

    /// Sends a request and does not wait.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last += 1;
        let id = self.last;
        self.book.pages().open.insert(id, method.to_owned());
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        self.line(line.as_bytes())?;
        Ok(id)
    }

    /// Sends a line, whatever it is.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.stream
            .write_all(line)
            .and_then(|()| self.stream.write_all(b"\n"))
            .context("the server does not read")
    }

    /// The whole answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value> {
        let end = Instant::now() + PATIENCE;
        let mut pages = self.book.pages();
        loop {
            if let Some(answer) = pages.answers.remove(&id) {
                return Ok(answer);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || pages.closed {
                let method = pages.open.get(&id).cloned().unwrap_or_default();
                bail!("no answer to {method}{}", if pages.closed { ": the server hung up" } else { "" });
            }
            let waited = self.book.changed.wait_timeout(pages, left);
            pages = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Sends a request and waits; an error that the server answers is an answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    /// The same where it must succeed: the result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.ask(method, params)?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("{method}: {}", answer["error"]["message"]),
        }
    }

    /// Waits for all answers and leaves; what was wrong.
    pub(crate) fn leave(mut self) -> Vec<String> {
        let open: Vec<u64> = self.book.pages().open.keys().copied().collect();
        let mut wrong: Vec<String> =
            open.into_iter().filter_map(|id| self.answer(id).err()).map(|error| error.to_string()).collect();
        wrong.append(&mut self.book.pages().wrong);
        wrong
    }
}

/// Hangs up, whatever is open.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
