//! `uptime` and `free`: how the machine is doing.

use std::time::Duration;
use toolkit::args::{Tool, bytes_of};
use toolkit::clock::{self, Clock};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input, processes, size};

const TOOL: Tool = Tool {
    name: "uptime",
    short: "phsV",
    long: &[("pretty", 'p'), ("since", 's')],
    help: "
Usage:
 uptime [options]

Options:
 -p, --pretty   show uptime in pretty format
     --help     display this help and exit
 -s, --since    system up since
     --version  output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let seconds = processes::uptime() as u64;
    let (clock, now) = (Clock::new(), clock::now());
    let line = match parsed.options.last().map(|(letter, _)| *letter) {
        Some('p') => format!("up {}\n", pretty(seconds)),
        Some('s') => {
            let start = now.saturating_sub((seconds as i64).saturating_mul(1_000_000_000));
            clock.format(start, "%Y-%m-%d %H:%M:%S") + "\n"
        }
        _ => {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let averages: Vec<&str> = load.split(' ').take(3).collect();
            let time = clock.format(now, "%H:%M:%S");
            format!(" {time} up {},  0 user,  load average: {}\n", brief(seconds), averages.join(", "))
        }
    };
    Out::new("uptime").put(line);
    0
}

fn brief(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let days = match days {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        days => format!("{days} days, "),
    };
    if hours == 0 { format!("{days}{minutes} min") } else { format!("{days}{hours:2}:{minutes:02}") }
}

fn pretty(seconds: u64) -> String {
    let units = [
        (seconds / 604_800, "week"),
        (seconds / 86_400 % 7, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
    ];
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let parts: Vec<String> = units
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}{}", plural(count)))
        .collect();
    if parts.is_empty() { "0 minutes".to_owned() } else { parts.join(", ") }
}

const FREE: Tool = Tool {
    name: "free",
    short: "bkmghltws:c:vV",
    long: &[
        ("bytes", 'b'),
        ("kibi", 'k'),
        ("mebi", 'm'),
        ("gibi", 'g'),
        ("human", 'h'),
        ("si", 'S'),
        ("total", 't'),
        ("wide", 'w'),
        ("lohi", 'l'),
        ("seconds=", 's'),
        ("count=", 'c'),
    ],
    help: "
Usage:
 free [options]

Options:
 -b, --bytes         show output in bytes
 -k, --kibi          show output in kibibytes
 -m, --mebi          show output in mebibytes
 -g, --gibi          show output in gibibytes
 -h, --human         show human-readable output
     --si            use powers of 1000 not 1024
 -t, --total         show total for RAM + swap
 -s N, --seconds N   repeat printing every N seconds
 -c N, --count N     repeat printing N times, then exit
 -w, --wide          wide output
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

/// How `free` shows amounts.
#[derive(Clone, Copy)]
struct Amounts {
    power: u32,
    human: bool,
    unit: u128,
}

pub fn free(arguments: Arguments) -> i32 {
    let parsed = match FREE.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut amounts = Amounts { power: 1, human: false, unit: 1024 };
    let (mut total, mut wide, mut seconds, mut count) = (false, false, None, None);
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'b' => amounts.power = 0,
            'k' => amounts.power = 1,
            'm' => amounts.power = 2,
            'g' => amounts.power = 3,
            'h' => amounts.human = true,
            'S' => amounts.unit = 1000,
            't' => total = true,
            'w' => wide = true,
            's' => seconds = input::number::<f64>(&text).filter(|seconds| *seconds > 0.0),
            'c' => count = input::number::<u64>(&text),
            _ => {}
        }
    }
    let times = count.unwrap_or(if seconds.is_some() { u64::MAX } else { 1 });
    let pause = seconds.unwrap_or(1.0);
    if !pause.is_finite() {
        complain("free", "seconds argument failed");
        return 1;
    }
    let mut out = Out::new("free");
    for round in 0..times {
        if round > 0 {
            out.put("\n");
            out.flush();
            std::thread::sleep(Duration::from_secs_f64(pause.min(1e9)));
        }
        out.put(amounts.table(total, wide));
    }
    0
}

impl Amounts {
    fn show(self, kib: u64) -> String {
        let bytes = u128::from(kib) * 1024;
        if !self.human {
            return (bytes / self.unit.pow(self.power)).to_string();
        }
        let text = size::human(bytes, self.unit);
        match (self.unit, text.ends_with(|last: char| last.is_ascii_digit())) {
            (_, true) => text + "B",
            (1024, false) => text + "i",
            _ => text,
        }
    }

    fn table(self, total: bool, wide: bool) -> String {
        let [all, free, available, buffers, cached, shared] =
            ["MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "Shmem"].map(processes::memory);
        let [swap, swap_free] = ["SwapTotal", "SwapFree"].map(processes::memory);
        let cache = cached + processes::memory("SReclaimable");
        let used = all.saturating_sub(free + buffers + cache);
        let line = |title: &str, cells: &[u64]| {
            let cells: String = cells.iter().map(|cell| format!(" {:>11}", self.show(*cell))).collect();
            format!("{title:<8}{}\n", &cells)
        };
        let head = |titles: &[&str]| {
            let cells: String = titles.iter().map(|title| format!(" {title:>11}")).collect();
            format!("{:8}{cells}\n", "")
        };
        let mut text = if wide {
            head(&["total", "used", "free", "shared", "buffers", "cache", "available"])
                + &line("Mem:", &[all, used, free, shared, buffers, cache, available])
        } else {
            head(&["total", "used", "free", "shared", "buff/cache", "available"])
                + &line("Mem:", &[all, used, free, shared, buffers + cache, available])
        };
        text += &line("Swap:", &[swap, swap - swap_free, swap_free]);
        if total {
            text += &line("Total:", &[all + swap, used + swap - swap_free, free + swap_free]);
        }
        text
    }
}
