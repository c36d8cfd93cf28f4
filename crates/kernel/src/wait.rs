//! wait: reporting children that ended or stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Errno, Result};

use crate::machine::Machine;
use crate::proc::{Life, Pid, Process};

/// Returns immediately, even if no child is ready.
pub(crate) const NOHANG: u32 = 1;
/// Also reports stopped children.
pub(crate) const UNTRACED: u32 = 2;

/// A child's report: its pid and its status word.
pub(crate) type News = (Pid, u32);

/// Waits for one of the children that `target` names. `None` only with NOHANG.
pub(crate) async fn wait(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    target: i32,
    flags: u32,
) -> Result<Option<News>> {
    if flags & !(NOHANG | UNTRACED) != 0 {
        return Err(Errno::EINVAL);
    }
    if let Some(news) = poll(machine, process, target, flags)? {
        return Ok(Some(news));
    }
    if flags & NOHANG != 0 {
        return Ok(None);
    }
    process.interruptible(news(machine, process, target, flags)).await.map(Some)
}

async fn news(machine: &Machine, process: &Process, target: i32, flags: u32) -> Result<News> {
    loop {
        let mut changed = std::pin::pin!(process.child_changed.notified());
        changed.as_mut().enable();
        if let Some(news) = poll(machine, process, target, flags)? {
            return Ok(news);
        }
        changed.await;
    }
}

/// Takes a matching child's report if there is any. Returns ECHILD if no child matches at all.
fn poll(machine: &Machine, process: &Process, target: i32, flags: u32) -> Result<Option<News>> {
    let mut table = machine.table();
    let mut any = false;
    let mut found = None;
    for (pid, entry) in table.matching(process.pid, target).filter(|(_, e)| e.parent == process.pid) {
        any = true;
        found = match entry.life {
            Life::Zombie(status) => Some((*pid, status.word())),
            // One that is still in its turn is reported after it: until then it may do something.
            Life::Stopped { signal, reported: false }
                if flags & UNTRACED != 0 && !entry.process.task().is_in_its_turn() =>
            {
                Some((*pid, u32::from(signal) << 8 | 0x7f))
            }
            _ => continue,
        };
        break;
    }
    let Some((pid, word)) = found else { return if any { Ok(None) } else { Err(Errno::ECHILD) } };
    if word & 0xff == 0x7f {
        if let Some(entry) = table.get_mut(pid)
            && let Life::Stopped { reported, .. } = &mut entry.life
        {
            *reported = true;
        }
    } else if let Some(entry) = table.remove(pid) {
        let child = &entry.process;
        let cpu = child.task().cpu_nanos() + child.children_cpu.load(Ordering::Relaxed);
        process.children_cpu.fetch_add(cpu, Ordering::Relaxed);
    }
    Ok(Some((pid, word)))
}
