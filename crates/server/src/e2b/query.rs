//! The query of an address, decoded.

/// Names and values, in order.
pub(crate) struct Query(Vec<(String, String)>);

/// How many are read.
const MOST: usize = 256;

impl Query {
    pub(crate) fn parse(text: &str) -> Query {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value))
        };
        Query(text.split('&').filter(|part| !part.is_empty()).take(MOST).map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&byte| (byte as char).to_digit(16));
        rest = match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                &after[2..]
            }
            (b'+', ..) => {
                bytes.push(b' ');
                after
            }
            _ => {
                bytes.push(byte);
                after
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded_once() {
        let query = Query::parse("path=%2Ftmp%2Fa%20b+c&empty=&bare&metadata=k%3Dv%2526&bad=%zz%e");
        let pairs: Vec<_> = query.pairs().collect();
        let expected =
            [("path", "/tmp/a b c"), ("empty", ""), ("bare", ""), ("metadata", "k=v%26"), ("bad", "%zz%e")];
        assert_eq!(pairs, expected);
    }
}
