//! `locale`: the one locale of a sandbox, C.UTF-8, which the variables cannot change.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain};

const TOOL: Tool = Tool {
    name: "locale",
    short: "amckvh?",
    long: &[
        ("all-locales", 'a'),
        ("charmaps", 'm'),
        ("category-name", 'c'),
        ("keyword-name", 'k'),
        ("verbose", 'v'),
        ("usage", 'h'),
    ],
    help: "\
Usage: locale [OPTION...] NAME
  or:  locale [OPTION...] [-a|-m]
Get locale-specific information.

  -a, --all-locales     write names of available locales
  -m, --charmaps        write names of available charmaps
  -c, --category-name   write names of selected categories
  -k, --keyword-name    write names of selected keywords
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

const CATEGORIES: [&str; 12] = [
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
];

/// Keywords with their categories and values. A value is a string, in quotes under `-k`, or a number.
const KEYWORDS: &[(&str, &str, &str, bool)] = &[
    ("charmap", "LC_CTYPE", "UTF-8", true),
    ("ctype-mb-cur-max", "LC_CTYPE", "6", false),
    ("decimal_point", "LC_NUMERIC", ".", true),
    ("thousands_sep", "LC_NUMERIC", "", true),
    ("grouping", "LC_NUMERIC", "-1", false),
    ("abday", "LC_TIME", "Sun;Mon;Tue;Wed;Thu;Fri;Sat", true),
    ("day", "LC_TIME", "Sunday;Monday;Tuesday;Wednesday;Thursday;Friday;Saturday", true),
    ("abmon", "LC_TIME", "Jan;Feb;Mar;Apr;May;Jun;Jul;Aug;Sep;Oct;Nov;Dec", true),
    (
        "mon",
        "LC_TIME",
        "January;February;March;April;May;June;July;August;September;October;November;December",
        true,
    ),
    ("am_pm", "LC_TIME", "AM;PM", true),
    ("d_t_fmt", "LC_TIME", "%a %b %e %H:%M:%S %Y", true),
    ("d_fmt", "LC_TIME", "%m/%d/%y", true),
    ("t_fmt", "LC_TIME", "%H:%M:%S", true),
    ("t_fmt_ampm", "LC_TIME", "%I:%M:%S %p", true),
    ("int_curr_symbol", "LC_MONETARY", "", true),
    ("currency_symbol", "LC_MONETARY", "", true),
    ("mon_decimal_point", "LC_MONETARY", "", true),
    ("mon_thousands_sep", "LC_MONETARY", "", true),
    ("yesexpr", "LC_MESSAGES", "^[yY]", true),
    ("noexpr", "LC_MESSAGES", "^[nN]", true),
    ("measurement", "LC_MEASUREMENT", "1", false),
];

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    if has('h') || has('?') {
        return TOOL.answer(toolkit::args::Refusal::Help);
    }
    if has('v') {
        complain("locale", "--verbose is not supported: there is one locale");
        return 1;
    }
    let mut out = Out::new("locale");
    if has('a') {
        out.put("C\nC.utf8\nPOSIX\n");
        return 0;
    }
    if has('m') {
        out.put("ANSI_X3.4-1968\nUTF-8\n");
        return 0;
    }
    if parsed.operands.is_empty() {
        show_settings(&mut out);
        return 0;
    }
    let mut code = 0;
    for operand in &parsed.operands {
        let name = String::from_utf8_lossy(operand);
        let found: Vec<_> =
            KEYWORDS.iter().filter(|(keyword, category, ..)| *keyword == name || *category == name).collect();
        if found.is_empty() && !CATEGORIES.contains(&&*name) {
            out.flush();
            complain("locale", format_args!("unknown name \"{name}\""));
            code = 1;
        }
        for (at, (keyword, category, value, is_text)) in found.into_iter().enumerate() {
            if has('c') && at == 0 {
                out.put(format!("{category}\n"));
            }
            match (has('k'), *is_text) {
                (true, true) => out.put(format!("{keyword}=\"{value}\"\n")),
                (true, false) => out.put(format!("{keyword}={value}\n")),
                _ => out.put(format!("{value}\n")),
            }
        }
    }
    code
}

/// The variables, those in quotes that follow from others.
fn show_settings(out: &mut Out) {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    let (all, lang) = (value("LC_ALL"), value("LANG"));
    out.put(format!("LANG={lang}\nLANGUAGE={}\n", value("LANGUAGE")));
    for name in CATEGORIES {
        let own = value(name);
        match (all.is_empty(), own.is_empty()) {
            (true, false) => out.put(format!("{name}={own}\n")),
            (false, _) => out.put(format!("{name}=\"{all}\"\n")),
            (true, true) if lang.is_empty() => out.put(format!("{name}=\"POSIX\"\n")),
            (true, true) => out.put(format!("{name}=\"{lang}\"\n")),
        }
    }
    out.put(format!("LC_ALL={all}\n"));
}
