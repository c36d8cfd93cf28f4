//! Takes secrets out of a stream.
//!
//! A secret may come in two pieces, so what could be its beginning must wait for what follows. But what waits can be seen: a guest
//! with a server of its own would send itself one letter after the other, and learn the secret from those that do not come. So
//! only the beginnings of secrets wait that the server has anyway; of the others, those are masked that are in one piece.

/// Replaces secrets by as many asterisks, in a stream that comes in pieces of any size.
pub(crate) struct Mask<'a> {
    forms: &'a [Vec<u8>],
    /// Those whose beginnings wait.
    waiting: Vec<&'a [u8]>,
    /// The end of what was pushed, while it could be the beginning of a secret.
    kept: Vec<u8>,
    /// How many of those bytes belong to a secret that was found already.
    covered: usize,
}

impl<'a> Mask<'a> {
    pub(crate) fn new(forms: &'a [Vec<u8>], waiting: Vec<&'a [u8]>) -> Mask<'a> {
        Mask { forms, waiting, kept: Vec::new(), covered: 0 }
    }

    /// Takes a piece. `None`: it can be passed on as it is.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        if self.forms.is_empty() {
            return None;
        }
        if self.kept.is_empty() && self.beginning(piece) == piece.len() && self.find(piece).is_empty() {
            return None;
        }
        let mut all = std::mem::take(&mut self.kept);
        all.extend_from_slice(piece);
        let found = self.find(&all);
        let keep_from = self.beginning(&all);
        let covered_to = found.iter().map(|range| range.end).max().unwrap_or(0).max(self.covered);
        self.kept = all[keep_from..].to_vec();
        let covered = std::mem::replace(&mut self.covered, covered_to.saturating_sub(keep_from));
        all[..covered].fill(b'*');
        for range in found {
            all[range].fill(b'*');
        }
        all.truncate(keep_from);
        Some(all)
    }

    /// Tells whether something is kept back.
    pub(crate) fn keeps(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns what was kept back: the stream is at its end.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.kept);
        let covered = std::mem::take(&mut self.covered).min(rest.len());
        rest[..covered].fill(b'*');
        rest
    }

    fn find(&self, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        for form in self.forms {
            let finder = memchr::memmem::Finder::new(form);
            let mut from = 0;
            while let Some(at) = finder.find(&bytes[from..]) {
                let range = from + at..from + at + form.len();
                // Those that overlap are one: a secret may repeat itself.
                match found.last_mut() {
                    Some(last) if (last.start..=last.end).contains(&range.start) => {
                        last.end = last.end.max(range.end);
                    }
                    _ => found.push(range),
                }
                from += at + 1;
            }
        }
        found
    }

    /// Returns where the longest end of `bytes` starts that is the beginning of a secret, if that waits.
    fn beginning(&self, bytes: &[u8]) -> usize {
        let start = |form: &&[u8]| {
            let from = (bytes.len() + 1).saturating_sub(form.len());
            let starts = memchr::memchr_iter(form[0], &bytes[from..]);
            starts.map(|at| from + at).find(|at| form.starts_with(&bytes[*at..])).unwrap_or(bytes.len())
        };
        self.waiting.iter().map(start).min().unwrap_or(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::name::Host;
    use crate::policy::{Secret, SecretPlace};
    use crate::secrets::Secrets;

    fn own() -> Host {
        Host::Name("x.com".into())
    }

    fn secrets(value: &str) -> Secrets {
        let (name, host) = ("KEY".to_owned(), "x.com".to_owned());
        let secret = Secret { name, host, value: value.to_owned(), place: SecretPlace::Placeholder };
        Secrets::new(&[secret]).expect("secrets")
    }

    proptest! {
        /// However a stream is cut into pieces, no secret comes through, and nothing else changes.
        #[test]
        fn pieces_make_no_difference(
            parts in prop::collection::vec(prop::sample::select(vec!["s3cret/value", "s3cret", "/value", "s", "s3cret%2Fvalue", "x", " "]), 0..20),
            cuts in prop::collection::vec(1usize..9, 0..60),
        ) {
            let known = secrets("s3cret/value");
            let text = parts.concat();
            let (mut mask, mut out, mut rest) = (known.mask(&own()), Vec::new(), text.as_bytes());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                out.extend(mask.push(piece).unwrap_or_else(|| piece.to_vec()));
                rest = after;
            }
            out.extend(mask.push(rest).unwrap_or_else(|| rest.to_vec()));
            out.extend(mask.finish());
            let expected = text.replace("s3cret/value", "************").replace("s3cret%2Fvalue", "**************");
            prop_assert_eq!(String::from_utf8_lossy(&out), expected);
        }

        /// Occurrences that overlap are all covered.
        #[test]
        fn overlapping_occurrences_are_covered(text in "[ab]{0,60}", cuts in prop::collection::vec(1usize..9, 0..60)) {
            let known = secrets("abaababa");
            let (mut mask, mut out, mut rest) = (known.mask(&own()), Vec::new(), text.as_bytes());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                out.extend(mask.push(piece).unwrap_or_else(|| piece.to_vec()));
                rest = after;
            }
            out.extend(mask.push(rest).unwrap_or_else(|| rest.to_vec()));
            out.extend(mask.finish());
            prop_assert_eq!(out, known.mask_whole(text.as_bytes()));
        }

        /// From another server, whatever it sends passes at once, as much of it as there is.
        #[test]
        fn nothing_waits_that_another_server_sends(piece in "(s3cret/|s|s3|value){0,4}") {
            let known = secrets("s3cret/value");
            let mut mask = known.mask(&Host::Name("other.com".into()));
            let out = mask.push(piece.as_bytes()).unwrap_or_else(|| piece.as_bytes().to_vec());
            prop_assert!(!mask.keeps());
            prop_assert_eq!(String::from_utf8_lossy(&out), piece.replace("s3cret/value", "************"));
        }
    }
}
