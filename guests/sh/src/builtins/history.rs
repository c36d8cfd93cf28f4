//! `history` and `fc`.

use super::{fail, number, output};
use crate::shell::{Exec, Shell};

pub fn history(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    match args.get(1).map(Vec::as_slice) {
        Some(b"-c") => shell.history.clear(),
        Some(b"-d") => {
            let at = args.get(2).and_then(|text| number(text)).unwrap_or(0);
            let count = shell.history.len() as i64;
            let index = if at < 0 { count + at } else { at - 1 };
            if !(0..count).contains(&index) {
                let shown = args.get(2).cloned().unwrap_or_default();
                return Ok(fail(shell, b"history", &[&shown, b": history position out of range"], 1));
            }
            shell.history.remove(index as usize);
        }
        Some(b"-s") => shell.history.push(args[2..].join(&b' ')),
        Some(b"-a" | b"-r" | b"-w" | b"-n" | b"-p") => {}
        other => {
            let count = other.and_then(number).map_or(usize::MAX, |count| count.max(0) as usize);
            let skip = shell.history.len().saturating_sub(count);
            let mut text = Vec::new();
            for (at, line) in shell.history.iter().enumerate().skip(skip) {
                text.extend_from_slice(format!("{:5}  ", at + 1).as_bytes());
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            return Ok(output(shell, b"history", &text));
        }
    }
    Ok(0)
}

pub fn fc(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if args.get(1).is_some_and(|arg| arg == b"-l") {
        return history(shell, &args[..1]);
    }
    Ok(fail(shell, b"fc", &[b"history specification out of range"], 1))
}
