//! The URLs of an operation, in order, patterns spelled out.

use super::Failure;
use super::glob::Glob;
use super::operation::{Operation, Target};
use super::values::text;

/// What is left of an operation's URLs.
pub struct Urls<'a> {
    operation: &'a Operation,
    /// The target that comes after the present pattern.
    at: usize,
    glob: Option<Glob>,
    index: u64,
}

impl<'a> Urls<'a> {
    pub fn of(operation: &'a Operation) -> Urls<'a> {
        Urls { operation, at: 0, glob: None, index: 0 }
    }

    /// Goes on to the next target that has a URL; `None` after the last.
    fn advance(&mut self) -> Option<Result<(), Failure>> {
        let rest = self.operation.targets.get(self.at..)?;
        let skipped = rest.iter().position(|target| target.url.is_some())?;
        let given = rest[skipped].url.as_deref()?;
        (self.at, self.index) = (self.at + skipped + 1, 0);
        self.glob = Some(match self.operation.globoff {
            true => Glob::plain(given),
            false => match Glob::parse(given) {
                Ok(glob) => glob,
                Err(wrong) => {
                    let mark = " ".repeat(wrong.position.saturating_sub(1));
                    let place =
                        format!("{} in URL position {}:\n{given}\n{mark}^", wrong.message, wrong.position);
                    return Some(Err(Failure::new(3, &place)));
                }
            },
        });
        Some(Ok(()))
    }
}

impl Iterator for Urls<'_> {
    type Item = Result<(Target, String), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.glob.as_ref().is_none_or(|glob| self.index >= glob.count) {
            if let Err(failure) = self.advance()? {
                return Some(Err(failure));
            }
        }
        let (glob, target) = (self.glob.as_ref()?, self.operation.targets.get(self.at - 1)?);
        let output = target.output.as_ref().map(|name| glob.fill(&text(name), self.index).into_bytes());
        let url = glob.url(self.index);
        self.index += 1;
        Some(Ok((Target { output, ..target.clone() }, url)))
    }
}
