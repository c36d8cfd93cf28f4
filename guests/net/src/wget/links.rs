//! Links in a page.

/// The most links that are taken from a page.
const MOST: usize = 10_000;

/// Tags and the attributes that hold links.
const LINKS: &[(&str, &str)] = &[
    ("a", "href"),
    ("applet", "code"),
    ("area", "href"),
    ("audio", "src"),
    ("base", "href"),
    ("body", "background"),
    ("embed", "src"),
    ("frame", "src"),
    ("iframe", "src"),
    ("img", "src"),
    ("input", "src"),
    ("link", "href"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("td", "background"),
    ("video", "src"),
];

/// A link as it is written, and whether the page needs it to be shown.
pub struct Link {
    pub target: String,
    pub inline: bool,
    pub is_base: bool,
}

/// Finds the links of a page, outside of comments.
pub fn find(page: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let tag = rest[..length].to_ascii_lowercase();
        rest = &rest[length..];
        while let Some((name, value, after)) = attribute(rest) {
            rest = after;
            if LINKS.contains(&(tag.as_str(), name.as_str())) && links.len() < MOST {
                let inline = !matches!(tag.as_str(), "a" | "area" | "base");
                links.push(Link { target: unescape(value.trim()), inline, is_base: tag == "base" });
            }
        }
    }
    links
}

/// Takes an attribute off the front of a tag's inside; `None` at its end.
fn attribute(text: &str) -> Option<(String, &str, &str)> {
    let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
    let end =
        text.find(|letter: char| letter.is_whitespace() || "=></".contains(letter)).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    let (name, rest) = text.split_at(end);
    let name = name.to_ascii_lowercase();
    let Some(value) = rest.trim_start().strip_prefix('=') else { return Some((name, "", rest)) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            let (inside, after) = inner.split_once(quote)?;
            return Some((name, inside, after));
        }
    }
    let end = value.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(value.len());
    let (value, after) = value.split_at(end);
    Some((name, value, after))
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_every_spelling() {
        let page = "<A HREF='x'>1</A><img src=y.png><!-- <a href=z> --><a\nhref = \"w?a&amp;b\" class=q><script src=s>";
        let found: Vec<String> = find(page).into_iter().map(|link| link.target).collect();
        assert_eq!(found, ["x", "y.png", "w?a&b", "s"]);
        for broken in ["<", "<a", "<a href", "<a href=", "<a href=\"", "<!--", "<é a=é>", "<a href='"] {
            find(broken);
        }
    }
}
