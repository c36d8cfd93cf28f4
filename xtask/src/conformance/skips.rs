//! The tests that cannot pass, with reasons: `guests/python/tests/conformance.txt`.
//!
//! A line that begins with `= ` is a reason; the lines below it are the tests that it holds for: the name of a module, or
//! patterns of names of tests (`test_os.ForkTests.*`), in which `*` stands for anything. `#` begins a comment.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Pairs of a pattern and a reason.
#[derive(Default)]
pub(super) struct Skips(Vec<(String, String)>);

impl Skips {
    pub(super) fn read(file: &Path) -> Result<Skips> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Skips::parse(&text)
    }

    fn parse(text: &str) -> Result<Skips> {
        let mut reason = None;
        let mut skips = Skips::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(next) = line.strip_prefix("= ") {
                reason = Some(next);
                continue;
            }
            let Some(reason) = reason else { bail!("{line} has no reason") };
            if line.contains(char::is_whitespace) || !line.starts_with("test_") {
                bail!("not the name of a test: {line}");
            }
            skips.0.push((line.to_owned(), reason.to_owned()));
        }
        Ok(skips)
    }

    /// Why a module is not run at all, if so.
    pub(super) fn whole_module(&self, module: &str) -> Option<&str> {
        let within = |name: &str| module == name || module.starts_with(&format!("{name}."));
        self.0.iter().find(|(pattern, _)| within(pattern)).map(|(_, reason)| reason.as_str())
    }

    /// As `conformance.py` reads them.
    pub(super) fn lines(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (pattern, reason)| {
            let _ = writeln!(text, "{pattern}\t{reason}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Skips;

    #[test]
    fn skips_have_a_reason_and_name_tests() {
        let skips = Skips::parse("# why\n= no fork\ntest_a.B.*\ntest_c\n").unwrap();
        assert_eq!(skips.lines(), "test_a.B.*\tno fork\ntest_c\tno fork\n");
        assert_eq!(skips.whole_module("test_c"), Some("no fork"));
        assert_eq!(skips.whole_module("test_c.test_d"), Some("no fork"));
        assert_eq!((skips.whole_module("test_a"), skips.whole_module("test_cc")), (None, None));
        assert!(Skips::parse("test_a").is_err());
        assert!(Skips::parse("= why\nfoo").is_err());
    }

    #[test]
    fn the_skips_of_the_repository_can_be_read() {
        Skips::read(&super::super::skips_file()).unwrap();
    }
}
