//! What the tests of a module gave, and the page with all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitStatus;

use anyhow::{Result, bail};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// The suite skipped it itself.
    Skipped,
    /// It is in the list of what cannot pass.
    Excluded,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Excluded => "excluded",
        }
    }
}

/// One module.
pub(super) struct Report {
    pub(super) module: String,
    /// Outcome and detail (a traceback or a reason) of each test.
    tests: BTreeMap<String, (Outcome, String)>,
}

impl Report {
    pub(super) fn new(module: &str) -> Report {
        Report { module: module.to_owned(), tests: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, name: &str, outcome: Outcome, detail: &str) {
        // A test that failed once has failed, whatever is reported of its parts or its class afterwards.
        if self.tests.get(name).is_none_or(|(before, _)| *before != Outcome::Failed) {
            self.tests.insert(name.to_owned(), (outcome, detail.to_owned()));
        }
    }

    /// Takes over what one run of the module printed. Answers whether the module is done: if not, the test that was
    /// running has ended the interpreter, and has failed.
    pub(super) fn read(&mut self, printed: &str, status: ExitStatus) -> bool {
        let mut running = None;
        for line in printed.lines() {
            let (head, detail) = line.split_once('\t').unwrap_or((line, ""));
            let (word, name) = head.split_once(' ').unwrap_or((head, ""));
            let outcome = match word {
                "end" => return true,
                "begin" => {
                    running = Some(name.to_owned());
                    continue;
                }
                "passed" => Outcome::Passed,
                "failed" => Outcome::Failed,
                "skipped" => Outcome::Skipped,
                "excluded" => Outcome::Excluded,
                _ => continue,
            };
            self.add(name, outcome, &unescaped(detail));
            running = None;
        }
        let at = running.clone().unwrap_or_else(|| format!("{}.between_tests", self.module));
        self.add(&at, Outcome::Failed, &format!("the interpreter ended: {status}"));
        // Without a test to leave out, the next run would end at the same place.
        running.is_none()
    }

    /// The tests that need not be run again, one on a line.
    pub(super) fn names(&self) -> String {
        self.tests.keys().fold(String::new(), |text, name| text + name + "\n")
    }

    /// What [`Report::stored`] makes a report of again.
    pub(super) fn to_store(&self) -> String {
        let mut text = String::new();
        for (name, (outcome, detail)) in &self.tests {
            let detail = detail.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
            let _ = writeln!(text, "{} {name}\t{detail}", outcome.word());
        }
        text + "end\n"
    }

    /// The report of a module that was run before.
    pub(super) fn stored(module: &str, text: &str) -> Report {
        let mut report = Report::new(module);
        report.read(text, ExitStatus::default());
        report
    }

    fn count(&self, wanted: Outcome) -> usize {
        self.tests.values().filter(|(outcome, _)| *outcome == wanted).count()
    }

    /// For the screen.
    pub(super) fn line(&self) -> String {
        let (passed, failed) = (self.count(Outcome::Passed), self.count(Outcome::Failed));
        let (skipped, excluded) = (self.count(Outcome::Skipped), self.count(Outcome::Excluded));
        let module = &self.module;
        format!("{module}: {passed} passed, {failed} failed, {skipped} skipped, {excluded} excluded")
    }

    /// The failures with their tracebacks.
    pub(super) fn failures(&self) -> String {
        let mut text = String::new();
        for (name, detail) in self.failed() {
            let _ = writeln!(text, "---- {name}\n{detail}");
        }
        text
    }

    fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.tests.iter().filter(|(_, (outcome, _))| *outcome == Outcome::Failed);
        failed.map(|(name, (_, detail))| (name.as_str(), detail.as_str()))
    }
}

/// What `conformance.py` wrote on one line.
fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                other => other.unwrap_or('\\'),
            },
            letter => letter,
        });
    }
    text
}

/// Lists the failures; fails if there are any.
pub(super) fn verdict(reports: &[Report]) -> Result<()> {
    let failed: Vec<&str> = reports.iter().flat_map(Report::failed).map(|(name, _)| name).collect();
    let passed: usize = reports.iter().map(|report| report.count(Outcome::Passed)).sum();
    println!("python-conformance: {passed} passed, {} failed", failed.len());
    if !failed.is_empty() {
        bail!("failed (tracebacks are in target/conformance):\n{}", failed.join("\n"));
    }
    Ok(())
}

const INTRODUCTION: &str = "\
# CPython's own tests in the sandbox

`cargo xtask python-conformance` runs the test suite of CPython's source package with the sandbox's `python3`, each module in a
sandbox of its own, and writes this page. `guests/python/tests/conformance.txt` has the tests that are excluded, with
reasons. A test that the suite skips by itself lacks something that the suite looks for: a thread, a test-only C module, another
platform, a resource such as the network that its own runner does not use unless asked.

";

/// docs/cpython-conformance.md.
pub(super) fn page(reports: &[Report]) -> String {
    let mut text = INTRODUCTION.to_owned();
    let total = |wanted| reports.iter().map(|report| report.count(wanted)).sum::<usize>();
    let (passed, failed) = (total(Outcome::Passed), total(Outcome::Failed));
    let with_tests = reports.iter().filter(|report| report.count(Outcome::Passed) > 0).count();
    let _ = writeln!(
        text,
        "{} modules, {with_tests} of them with tests that pass: {passed} tests of {} pass, {failed} fail, {} are excluded, and the suite skips {}.\n",
        reports.len(),
        passed + failed + total(Outcome::Excluded),
        total(Outcome::Excluded),
        total(Outcome::Skipped)
    );
    let _ = writeln!(text, "## Excluded\n\n| tests | reason |\n|---|---|");
    for (reason, count) in reasons(reports) {
        let _ = writeln!(text, "| {count} | {reason} |");
    }
    let _ = writeln!(text, "\n## The network\n\nThe modules about sockets and what is made of them.\n");
    let of_network: Vec<&Report> = reports.iter().filter(|report| is_of_network(&report.module)).collect();
    text += &table(&of_network);
    let _ = writeln!(text, "\n| tests | excluded of these because |\n|---|---|");
    for (reason, count) in reasons(of_network.iter().copied()) {
        let _ = writeln!(text, "| {count} | {reason} |");
    }
    let _ = writeln!(text, "\n## Failures\n");
    if failed == 0 {
        let _ = writeln!(text, "None.");
    }
    for (name, _) in reports.iter().flat_map(Report::failed) {
        let _ = writeln!(text, "- `{name}`");
    }
    let _ = writeln!(text, "\n## Modules\n");
    text + &table(&reports.iter().collect::<Vec<_>>())
}

/// The beginnings of the names of modules that are about the network.
const NETWORK: &[&str] = &[
    "test_asyncio.test_sendfile",
    "test_asyncio.test_server",
    "test_asyncio.test_sock",
    "test_asyncio.test_ssl",
    "test_asyncio.test_streams",
    "test_docxmlrpc",
    "test_epoll",
    "test_ftplib",
    "test_http",
    "test_imaplib",
    "test_ipaddress",
    "test_poll",
    "test_poplib",
    "test_robotparser",
    "test_select",
    "test_smtp",
    "test_socket",
    "test_ssl",
    "test_timeout",
    "test_urllib",
    "test_urlparse",
    "test_wsgiref",
    "test_xmlrpc",
];

fn is_of_network(module: &str) -> bool {
    NETWORK.iter().any(|start| module.starts_with(start))
}

fn table(reports: &[&Report]) -> String {
    let mut text = "| module | passed | of | skipped by the suite |\n|---|---|---|---|\n".to_owned();
    for report in reports {
        let passed = report.count(Outcome::Passed);
        let of = passed + report.count(Outcome::Failed) + report.count(Outcome::Excluded);
        let _ =
            writeln!(text, "| {} | {passed} | {of} | {} |", report.module, report.count(Outcome::Skipped));
    }
    text
}

/// How many tests are excluded for each reason. A module that is excluded counts as one.
fn reasons<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Vec<(&'a str, usize)> {
    let mut reasons = BTreeMap::new();
    let tests = reports.into_iter().flat_map(|report| report.tests.values());
    for (_, reason) in tests.filter(|(outcome, _)| *outcome == Outcome::Excluded) {
        *reasons.entry(reason.as_str()).or_insert(0) += 1;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    reasons
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::{Outcome, Report};

    #[test]
    fn a_test_that_ends_the_interpreter_has_failed_and_the_rest_is_run_again() {
        let mut report = Report::new("test_a");
        let status = ExitStatus::from_raw(139 << 8);
        assert!(!report.read("begin a.b\npassed a.b\nbegin a.c\n", status));
        assert_eq!(report.names(), "a.b\na.c\n");
        assert!(report.read("begin a.d\nfailed a.d\tx\\ny\nskipped a.e\tno\nend\n", status));
        assert_eq!((report.count(Outcome::Failed), report.count(Outcome::Passed)), (2, 1));
        assert!(report.failures().contains("---- a.d\nx\ny\n"), "{}", report.failures());
    }

    #[test]
    fn a_report_that_was_stored_is_the_same_again() {
        let mut report = Report::new("test_a");
        report.read("passed a.b\nfailed a.d\tx\\ny\\\\n\\tz\nskipped a.e\tno\nend\n", ExitStatus::default());
        let again = Report::stored("test_a", &report.to_store());
        assert_eq!(again.tests, report.tests);
        assert_eq!(again.tests["a.d"], (Outcome::Failed, "x\ny\\n\tz".to_owned()));
    }

    #[test]
    fn an_interpreter_that_ends_between_tests_is_a_failure_and_not_started_again() {
        let mut report = Report::new("test_a");
        assert!(report.read("", ExitStatus::from_raw(0)));
        assert_eq!(report.count(Outcome::Failed), 1);
    }
}
