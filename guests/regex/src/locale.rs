//! What the environment says of characters.

/// Whether the locale of the environment says that text is UTF-8. One that says nothing is the sandbox's own.
pub fn locale_is_utf8() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let Some(locale) = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")) else { return true };
    !matches!(locale.to_str(), Some("C" | "POSIX"))
}
