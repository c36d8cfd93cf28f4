//! `lscpu`: the processors, as far as a sandbox is told of them.

use toolkit::Arguments;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;

const TOOL: Tool = Tool {
    name: "lscpu",
    short: "Jp::e::h",
    long: &[("json", 'J'), ("parse[=", 'p'), ("extended[=", 'e')],
    help: "
Usage:
 lscpu [options]

Display information about the CPU architecture.

Options:
 -J, --json              use JSON for the summary
 -e, --extended[=CPU]    print out a readable table
 -p, --parse[=CPU]       print out a parsable format
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Some(extra) = parsed.operands.first() {
        return TOOL.wrong(format_args!("bad usage: {}", String::from_utf8_lossy(extra)));
    }
    let letter = parsed.options.last().map(|(letter, _)| *letter);
    if parsed
        .options
        .iter()
        .any(|(letter, list)| "pe".contains(*letter) && list.as_deref().is_some_and(|list| list != b"CPU"))
    {
        return TOOL.wrong("only the column CPU is known");
    }
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let last = count - 1;
    let range = if count == 1 { "0".to_owned() } else { format!("0-{last}") };
    let count_text = count.to_string();
    let fields = [
        ("Architecture:", "x86_64"),
        ("CPU op-mode(s):", "64-bit"),
        ("Byte Order:", "Little Endian"),
        ("CPU(s):", count_text.as_str()),
        ("On-line CPU(s) list:", range.as_str()),
    ];
    let mut out = Out::new("lscpu");
    match letter {
        Some('h') => return TOOL.answer(toolkit::args::Refusal::Help),
        Some('J') => {
            let rows: Vec<String> = fields
                .iter()
                .map(|(field, data)| {
                    format!(
                        "      {{\n         \"field\": \"{field}\",\n         \"data\": \"{data}\"\n      }}"
                    )
                })
                .collect();
            out.put(format!("{{\n   \"lscpu\": [\n{}\n   ]\n}}\n", rows.join(",\n")));
        }
        Some('p') => {
            out.put("# The following is the parsable format, which can be fed to other\n# programs. Each different item in every column has an unique ID\n# starting usually from zero.\n# CPU\n");
            (0..count).for_each(|cpu| out.put(format!("{cpu}\n")));
        }
        Some('e') => {
            out.put("CPU\n");
            (0..count).for_each(|cpu| out.put(format!("{cpu:>3}\n")));
        }
        _ => fields.iter().for_each(|(field, data)| out.put(format!("{field:<21} {data}\n"))),
    }
    0
}
