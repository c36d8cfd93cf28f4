//! One program, from start to end, on a helper.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::helper::Helper;
use super::output::{self, Kept};
use super::{Answer, Call, Patience, Phase, reached};
use crate::error::ToolError;
use crate::spec::{Ended, ExecSpec, Finished, Stream};
use crate::worker::wire::{Descriptors, Ending, Job, Obstacle, Order, Report, Step};

/// The result of a call, and the state of its helper.
pub(super) struct Outcome {
    pub result: Result<Finished, ToolError>,
    pub helper: Health,
}

/// The state of a helper after a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It can take another call.
    Well,
    /// It is gone, and it is unknown how far it got.
    Lost,
    /// It was gone before it received the call, which another can run.
    GoneBefore,
}

/// Longer than anyone waits, and short enough to be added to any time.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Runs a call's program on a helper.
pub(super) async fn run(
    helper: &mut Helper,
    call: &mut Call,
    patience: Patience,
    phase: watch::Receiver<Phase>,
) -> Outcome {
    let begun = Instant::now();
    let Call { spec, lane, output, answer } = call;
    let mut watched = Watch::new(Uuid::new_v4(), begun + spec.timeout.min(FOREVER), patience, phase);
    let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
    let [out, err] = match start(helper, watched.id, spec, patience).await {
        Ok(streams) => streams,
        Err(error) => return lost(&error, Health::GoneBefore),
    };
    let read = async {
        tokio::join!(
            stdout.fill(out, Stream::Stdout, spec.max_output, output.as_ref()),
            stderr.fill(err, Stream::Stderr, spec.max_output, output.as_ref()),
        );
    };
    let report = to_the_end(read, watched.until_the_end(helper, answer), patience).await;
    let result = match report {
        Ok(Report::Ended(_, ending)) if !watched.aborted => Ok(Finished {
            status: match ending {
                Ending::Exit(code) => Ended::Exit(code),
                Ending::Signal(signal) => Ended::Signal(signal),
            },
            truncated: stdout.truncated || stderr.truncated,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
            timed_out: watched.timed_out,
            duration: begun.elapsed(),
            worker: helper.number,
            lane: *lane,
        }),
        Ok(Report::NotStarted(_, obstacle)) => Err(not_started(spec, obstacle)),
        Ok(_) => Err(ToolError::ShuttingDown),
        Err(error) => return lost(&error, Health::Lost),
    };
    Outcome { result, helper: Health::Well }
}

/// Reads while the program runs, and then what is left in the pipes: everything that could write more is gone.
async fn to_the_end(
    read: impl Future<Output = ()>,
    end: impl Future<Output = io::Result<Report>>,
    patience: Patience,
) -> io::Result<Report> {
    let (mut read, mut end) = (pin!(read), pin!(end));
    let mut all_read = false;
    let report = loop {
        tokio::select! {
            () = &mut read, if !all_read => all_read = true,
            report = &mut end => break report?,
        }
    };
    if !all_read {
        let _ = tokio::time::timeout(patience.confirm, read).await;
    }
    Ok(report)
}

fn lost(error: &io::Error, helper: Health) -> Outcome {
    let why =
        if error.kind() == io::ErrorKind::UnexpectedEof { "it ended".to_owned() } else { error.to_string() };
    Outcome { result: Err(ToolError::WorkerLost(why)), helper }
}

/// Passes the job to the helper; returns its standard output and error.
async fn start(
    helper: &mut Helper,
    id: Uuid,
    spec: &ExecSpec,
    patience: Patience,
) -> io::Result<[Receiver; 2]> {
    let (from_stdout, to_stdout) = output::pipe()?;
    let (from_stderr, to_stderr) = output::pipe()?;
    let descriptors = Descriptors {
        cwd: spec.cwd.as_fd().try_clone_to_owned()?,
        jail: spec.confinement.jail.as_fd().try_clone_to_owned()?,
        stdout: to_stdout,
        stderr: to_stderr,
    };
    helper.send_job(&Order::Run(Box::new(job(id, spec, patience))), &descriptors).await?;
    Ok([from_stdout, from_stderr])
}

fn job(id: Uuid, spec: &ExecSpec, patience: Patience) -> Job {
    // Twice the timeout, but never so early that it would cut short the grace between the two signals.
    let timeout = spec.timeout.min(FOREVER);
    let ceiling = (timeout * 2).max(timeout + patience.kill + patience.confirm);
    Job {
        id,
        program: spec.program.clone().into_os_string(),
        name: spec.name.clone(),
        args: spec.args.clone(),
        env: spec.env.clone(),
        ceiling_ms: ceiling.as_millis().try_into().unwrap_or(u64::MAX),
        confinement: spec.confinement.in_jail(()),
    }
}

fn not_started(spec: &ExecSpec, obstacle: Obstacle) -> ToolError {
    match (obstacle.step, obstacle.errno) {
        (Step::Landlock, 0) => ToolError::ConfinementUnavailable("landlock".to_owned()),
        (Step::Seccomp, 0) => ToolError::ConfinementUnavailable("seccomp".to_owned()),
        (step, errno) => ToolError::StartFailed {
            program: spec.program.clone(),
            why: format!("{} ({})", io::Error::from_raw_os_error(errno), format!("{step:?}").to_lowercase()),
        },
    }
}

/// The deadlines of a call: what is sent, and when.
struct Watch {
    id: Uuid,
    stage: Stage,
    next: Instant,
    patience: Patience,
    phase: watch::Receiver<Phase>,
    timed_out: bool,
    aborted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Terminated,
    Killed,
}

impl Watch {
    fn new(id: Uuid, deadline: Instant, patience: Patience, phase: watch::Receiver<Phase>) -> Watch {
        Watch { id, stage: Stage::Running, next: deadline, patience, phase, timed_out: false, aborted: false }
    }

    /// Waits for the helper's final report on this call, and makes sure that it comes.
    async fn until_the_end(&mut self, helper: &mut Helper, answer: &mut Answer) -> io::Result<Report> {
        let mut caller_is_gone = false;
        loop {
            tokio::select! {
                report = helper.report() => match report? {
                    Report::Ended(id, ending) if id == self.id => return Ok(Report::Ended(id, ending)),
                    Report::NotStarted(id, obstacle) if id == self.id => return Ok(Report::NotStarted(id, obstacle)),
                    // Of a call that is long over.
                    _ => {}
                },
                () = tokio::time::sleep_until(self.next) => {
                    self.timed_out |= !self.aborted && !caller_is_gone;
                    self.press(helper).await?;
                }
                () = answer.closed(), if !caller_is_gone => {
                    caller_is_gone = true;
                    self.stage = self.stage.max(Stage::Terminated);
                    self.press(helper).await?;
                }
                () = reached(&mut self.phase, Phase::Closing), if !self.aborted => {
                    self.aborted = true;
                    if self.stage == Stage::Running {
                        self.press(helper).await?;
                    }
                }
            }
        }
    }

    /// Escalates one step: SIGTERM, SIGKILL, then the helper is abandoned.
    async fn press(&mut self, helper: &mut Helper) -> io::Result<()> {
        let (order, stage, patience) = match self.stage {
            Stage::Running => (Order::Terminate(self.id), Stage::Terminated, self.patience.kill),
            Stage::Terminated => (Order::Kill(self.id), Stage::Killed, self.patience.confirm),
            Stage::Killed => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not confirm the end in time"));
            }
        };
        self.stage = stage;
        self.next = Instant::now() + patience;
        helper.send(&order).await
    }
}
