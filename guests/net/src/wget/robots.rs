//! What a site asks programs not to fetch.

/// The paths that `robots.txt` keeps from wget.
#[derive(Default)]
pub struct Rules {
    denied: Vec<(bool, String)>,
}

impl Rules {
    pub fn parse(text: &str) -> Rules {
        let mut rules = Rules::default();
        let (mut concerns, mut in_names) = (false, false);
        for line in text.lines().take(10_000) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    let us = value == "*" || value.to_ascii_lowercase().starts_with("wget");
                    concerns = us || in_names && concerns;
                    in_names = true;
                    continue;
                }
                "disallow" if concerns && !value.is_empty() => rules.denied.push((false, value.to_owned())),
                "allow" if concerns && !value.is_empty() => rules.denied.push((true, value.to_owned())),
                _ => {}
            }
            in_names = false;
        }
        rules
    }

    pub fn allow(&self, path: &str) -> bool {
        self.denied
            .iter()
            .find(|(_, prefix)| path.starts_with(prefix.as_str()))
            .is_none_or(|(allowed, _)| *allowed)
    }
}
