//! Making many processes, and sending bytes between them.

use wardian_abi as abi;

use crate::Outcome;
use crate::load::said;

const CHUNK: usize = 64 * 1024;

/// Makes `count` children and checks what each answers.
pub fn fork(count: u32, how: &str) -> Outcome {
    match how {
        "each" => (0..count).try_for_each(|i| expect(child(i)?, i)),
        "together" => {
            let children: Vec<_> = (0..count).map(child).collect::<Result<_, _>>()?;
            children.into_iter().zip(0..).try_for_each(|(pid, i)| expect(pid, i))
        }
        "nested" => {
            let pid = abi::fork(|| nest(count)).map_err(said)?;
            expect(pid, 0)
        }
        other => Err(format!("'{other}' is none of each, together, nested")),
    }?;
    println!("{count}");
    Ok(0)
}

/// A child that writes to its own copy of a variable and answers a code of its own.
fn child(i: u32) -> Result<abi::Pid, String> {
    let mut kept = vec![i];
    let pid = abi::fork(|| {
        kept.push(i + 1);
        (kept[1] - 1) as i32 & 0x7f
    });
    if kept != [i] {
        return Err("a child wrote into its parent's memory".into());
    }
    pid.map_err(said)
}

/// 0 when every process below answered 0.
fn nest(depth: u32) -> i32 {
    if depth == 0 {
        return 0;
    }
    match abi::fork(|| nest(depth - 1)).map_err(said).and_then(|pid| expect(pid, 0)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn expect(pid: abi::Pid, i: u32) -> Result<(), String> {
    let waited = abi::wait(abi::Who::Child(pid), abi::WaitFlags::default()).map_err(said)?;
    let (_, status) = waited.ok_or("wait answered without a child")?;
    match status.code() == Some(i as i32 & 0x7f) {
        true => Ok(()),
        false => Err(format!("child {i} ended with status {:#x}", status.0)),
    }
}

/// A child writes counted bytes, `stages` children hand them on, and this process checks them.
pub fn pipes(bytes: u64, stages: u32) -> Outcome {
    let mut children = Vec::new();
    let mut source = stage(&mut children, None, |_, to| send(bytes, to))?;
    for _ in 0..stages {
        source = stage(&mut children, Some(source), pass_on)?;
    }
    receive(source, bytes)?;
    abi::close(source).map_err(said)?;
    children.into_iter().try_for_each(|pid| expect(pid, 0))?;
    println!("{bytes}");
    Ok(0)
}

/// Starts a child that reads `from` and writes into a new pipe; answers the pipe's other end.
fn stage(
    children: &mut Vec<abi::Pid>,
    from: Option<abi::Fd>,
    work: impl Fn(abi::Fd, abi::Fd) -> Result<(), String>,
) -> Result<abi::Fd, String> {
    let ends = abi::pipe(false).map_err(said)?;
    let child = abi::fork(|| {
        let worked = abi::close(ends.read).map_err(said).and_then(|()| work(from.unwrap_or(-1), ends.write));
        i32::from(worked.is_err())
    });
    children.push(child.map_err(said)?);
    abi::close(ends.write).map_err(said)?;
    if let Some(from) = from {
        abi::close(from).map_err(said)?;
    }
    Ok(ends.read)
}

/// The byte at a place in the stream: not periodic in any buffer's size.
fn byte_at(place: u64) -> u8 {
    (place % 251) as u8
}

fn send(bytes: u64, to: abi::Fd) -> Result<(), String> {
    let mut place = 0;
    while place < bytes {
        let end = bytes.min(place + CHUNK as u64);
        let chunk: Vec<u8> = (place..end).map(byte_at).collect();
        abi::write_all(to, &chunk).map_err(said)?;
        place = end;
    }
    Ok(())
}

fn pass_on(from: abi::Fd, to: abi::Fd) -> Result<(), String> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match abi::read(from, &mut buffer).map_err(said)? {
            0 => return Ok(()),
            n => abi::write_all(to, &buffer[..n]).map_err(said)?,
        }
    }
}

fn receive(from: abi::Fd, bytes: u64) -> Result<(), String> {
    let mut buffer = vec![0; CHUNK];
    let mut place = 0;
    loop {
        let n = abi::read(from, &mut buffer).map_err(said)?;
        if n == 0 {
            break;
        }
        for &byte in &buffer[..n] {
            if byte != byte_at(place) {
                return Err(format!("byte {place} is {byte}, not {}", byte_at(place)));
            }
            place += 1;
        }
    }
    if place == bytes { Ok(()) } else { Err(format!("{place} bytes arrived of {bytes}")) }
}
