//! Where commands come from: a script, line by line, or somebody who types them.

use crate::commands::{self, Outcome};
use crate::database::is_complete;
use crate::output::complain;
use crate::shell::{LINE, Shell, was_interrupted};
use std::sync::atomic::Ordering;
use wardian_abi as abi;
use wardian_abi::{Errno, Fd};

/// Lines of a descriptor, without their ends.
pub struct Lines {
    fd: Fd,
    buffer: Vec<u8>,
    start: usize,
    at_end: bool,
}

/// What asking for a line gave.
enum Line {
    Text(Vec<u8>),
    End,
    Interrupted,
}

impl Lines {
    pub fn of(fd: Fd) -> Lines {
        Lines { fd, buffer: Vec::new(), start: 0, at_end: false }
    }

    fn next(&mut self) -> Line {
        let mut searched = self.start;
        loop {
            if let Some(length) = self.buffer[searched..].iter().position(|&byte| byte == b'\n') {
                let end = searched + length;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                return Line::Text(line.strip_suffix(b"\r").map_or(line.clone(), <[u8]>::to_vec));
            }
            if self.at_end {
                let rest = self.buffer.split_off(self.start);
                return if rest.is_empty() { Line::End } else { Line::Text(rest) };
            }
            self.buffer.drain(..self.start);
            searched = self.buffer.len();
            self.start = 0;
            match self.fill() {
                Ok(()) => {}
                Err(Errno::INTR) if was_interrupted() => return Line::Interrupted,
                Err(Errno::INTR) => {}
                Err(_) => self.at_end = true,
            }
        }
    }

    fn fill(&mut self) -> Result<(), Errno> {
        let mut piece = [0; 16 * 1024];
        let count = abi::read(self.fd, &mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        self.at_end = count == 0;
        Ok(())
    }
}

/// How a script ended.
pub struct Ended {
    pub errors: usize,
    /// Whether it said `.quit`, or an exit code.
    pub quit: Option<i32>,
}

/// Runs a script to its end, or until the first error where `.bail` says so.
pub fn run(shell: &mut Shell, lines: &mut Lines) -> Ended {
    let typed = lines.fd == 0 && shell.interactive;
    let (mut sql, mut start, mut number) = (Vec::new(), 0, 0);
    let mut ended = Ended { errors: 0, quit: None };
    while ended.errors == 0 || !shell.bail || typed {
        shell.out.flush();
        if typed {
            complain_prompt(&shell.prompts[usize::from(!sql.is_empty())]);
        }
        let line = match lines.next() {
            Line::Text(line) => line,
            Line::Interrupted => {
                complain("\n");
                sql.clear();
                continue;
            }
            Line::End => {
                if typed {
                    shell.out.put("\n");
                }
                break;
            }
        };
        number += 1;
        LINE.store(number, Ordering::Relaxed);
        if sql.is_empty() && matches!(line.first(), Some(b'.' | b'#')) {
            match command(shell, &line) {
                Outcome::Done => {}
                Outcome::Failed => ended.errors += 1,
                Outcome::Quit(code) => {
                    ended.quit = Some(code);
                    return ended;
                }
            }
            continue;
        }
        if sql.is_empty() {
            start = number;
            sql.extend(line.trim_ascii_start());
        } else {
            // `go` and `/` on a line of their own end a statement, as other databases' shells have it.
            let ends = matches!(line.trim_ascii().to_ascii_lowercase().as_slice(), b"go" | b"/");
            sql.push(b'\n');
            sql.extend(if ends && is_complete(&[&sql[..], b";"].concat()) {
                b";".to_vec()
            } else {
                line.clone()
            });
        }
        if is_idle(&sql) {
            if shell.echo {
                shell.out.put([&sql[..], b"\n"].concat());
            }
            sql.clear();
        } else if (sql.ends_with(b";") || line.contains(&b';')) && is_complete(&sql) {
            ended.errors += usize::from(!finish(shell, &sql, start, typed));
            sql.clear();
        }
    }
    if !sql.is_empty() && !is_idle(&sql) {
        ended.errors += usize::from(!finish(shell, &sql, start, typed));
    }
    ended
}

/// Runs a command of the shell, or none for a line that is a comment.
fn command(shell: &mut Shell, line: &[u8]) -> Outcome {
    if shell.echo {
        shell.out.put([line, b"\n"].concat());
    }
    if line[0] == b'.' { commands::run(shell, line) } else { Outcome::Done }
}

/// Runs a statement, after which the file of `.once` is full.
fn finish(shell: &mut Shell, sql: &[u8], start: usize, typed: bool) -> bool {
    if shell.echo {
        shell.out.put([sql, b"\n"].concat());
    }
    let went_well = shell.run_read(sql, (!typed).then_some(start));
    if std::mem::take(&mut shell.once) > 0 {
        shell.out.reset();
    }
    went_well
}

fn complain_prompt(prompt: &[u8]) {
    // On a terminal that is gone, reading will say so.
    let _ = abi::write_all(1, prompt);
}

/// Whether a text has nothing but blanks and whole comments.
fn is_idle(sql: &[u8]) -> bool {
    let mut rest = sql.trim_ascii_start();
    loop {
        let end = if rest.starts_with(b"--") {
            Some(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            rest[2..].windows(2).position(|pair| pair == b"*/").map(|at| at + 4)
        } else {
            return rest.is_empty();
        };
        let Some(end) = end else { return false };
        rest = rest[end..].trim_ascii_start();
    }
}
