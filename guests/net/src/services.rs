//! Names of ports.

/// A few that everyone knows, for systems without `/etc/services`.
const KNOWN: &[(&str, u16, &str)] = &[
    ("ftp", 21, "tcp"),
    ("ssh", 22, "tcp"),
    ("telnet", 23, "tcp"),
    ("smtp", 25, "tcp"),
    ("domain", 53, "tcp"),
    ("domain", 53, "udp"),
    ("http", 80, "tcp"),
    ("pop3", 110, "tcp"),
    ("ntp", 123, "udp"),
    ("imap2", 143, "tcp"),
    ("https", 443, "tcp"),
    ("https", 443, "udp"),
    ("mysql", 3306, "tcp"),
    ("postgresql", 5432, "tcp"),
    ("redis", 6379, "tcp"),
    ("http-alt", 8080, "tcp"),
];

/// An entry: name, port, protocol, other names.
pub struct Service {
    pub name: String,
    pub port: u16,
    pub protocol: String,
    pub aliases: Vec<String>,
}

/// All there are.
pub fn all() -> Vec<Service> {
    let Ok(text) = std::fs::read_to_string("/etc/services") else {
        let known = KNOWN.iter().map(|(name, port, protocol)| Service {
            name: (*name).to_owned(),
            port: *port,
            protocol: (*protocol).to_owned(),
            aliases: Vec::new(),
        });
        return known.collect();
    };
    let entry = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let name = words.next()?.to_owned();
        let (port, protocol) = words.next()?.split_once('/')?;
        let aliases = words.map(str::to_owned).collect();
        Some(Service { name, port: port.parse().ok()?, protocol: protocol.to_owned(), aliases })
    };
    text.lines().filter_map(entry).collect()
}

/// The port of a name.
pub fn port(name: &str) -> Option<u16> {
    all().into_iter().find(|service| service.name == name).map(|service| service.port)
}

/// The name of a port.
pub fn name(port: u16, protocol: &str) -> Option<String> {
    all()
        .into_iter()
        .find(|service| service.port == port && service.protocol == protocol)
        .map(|service| service.name)
}
