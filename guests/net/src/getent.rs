//! `getent`: users, groups, hosts and services.

use crate::http::wire;
use crate::services;
use std::net::IpAddr;
use toolkit::args::Tool;
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "getent",
    short: "+",
    long: &[],
    help: "Usage: getent DATABASE [KEY...]
Print entries of a database: passwd, group, hosts, ahosts, ahostsv4, ahostsv6, services.
",
    misuse: 1,
};

const NOT_FOUND: i32 = 2;

fn advise() -> i32 {
    let _ = abi::write_all(1, b"Try `getent --help' or `getent --usage' for more information.\n");
    1
}

pub fn main(arguments: toolkit::Arguments) -> i32 {
    let parsed = match TOOL.parse(toolkit::args::bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let words: Vec<String> =
        parsed.operands.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let Some((database, keys)) = words.split_first() else {
        toolkit::complain("getent", "wrong number of arguments");
        return advise();
    };
    let lines = match database.as_str() {
        "passwd" => file("/etc/passwd", keys),
        "group" => file("/etc/group", keys),
        "hosts" => hosts(keys),
        "ahosts" => all_hosts(keys, |_| true),
        "ahostsv4" => all_hosts(keys, |address| address.is_ipv4()),
        "ahostsv6" => all_hosts(keys, |address| address.is_ipv6()),
        "services" => services(keys),
        "aliases" | "ethers" | "gshadow" | "initgroups" | "netgroup" | "networks" | "protocols" | "rpc"
        | "shadow" => {
            toolkit::complain("getent", format_args!("database {database} is not available in this sandbox"));
            return 1;
        }
        other => {
            let _ = abi::write_all(2, format!("Unknown database: {other}\n").as_bytes());
            return advise();
        }
    };
    let mut out = toolkit::out::Out::new("getent");
    let mut code = 0;
    for line in lines {
        match line {
            Some(line) => out.put(line + "\n"),
            None => code = NOT_FOUND,
        }
    }
    code
}

/// Lines of a file by name or number, or all of them.
fn file(path: &str, keys: &[String]) -> Vec<Option<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if keys.is_empty() {
        return text.lines().map(|line| Some(line.to_owned())).collect();
    }
    let find = |key: &String| {
        let mut lines = text.lines().map(|line| (line, line.split(':').collect::<Vec<&str>>()));
        lines
            .find(|(_, fields)| fields.first() == Some(&key.as_str()) || fields.get(2) == Some(&key.as_str()))
    };
    keys.iter().map(|key| find(key).map(|(line, _)| line.to_owned())).collect()
}

fn line(address: &str, rest: &str) -> String {
    format!("{} {rest}", toolkit::pad::after(address, ' ', 15))
}

fn hosts(keys: &[String]) -> Vec<Option<String>> {
    let file = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let entries = file.lines().filter_map(|text| {
        let mut words = text.split('#').next()?.split_whitespace();
        let address = words.next()?;
        Some((address, words.collect::<Vec<&str>>()))
    });
    let entries: Vec<(&str, Vec<&str>)> = entries.filter(|(_, names)| !names.is_empty()).collect();
    if keys.is_empty() {
        return entries.iter().map(|(address, names)| Some(line(address, &names.join(" ")))).collect();
    }
    let mut lines = Vec::new();
    for key in keys {
        if let Ok(address) = key.parse::<IpAddr>() {
            let known = entries.iter().find(|(text, _)| text.parse() == Ok(address));
            lines.push(known.map(|(_, names)| line(key, &names.join(" "))));
            continue;
        }
        let found = wire::addresses(key);
        // Addresses of the newer kind first, as glibc has them; the others only if there are none.
        let newer: Vec<&IpAddr> = found.iter().filter(|address| address.is_ipv6()).collect();
        let chosen: Vec<&IpAddr> = if newer.is_empty() { found.iter().collect() } else { newer };
        let names = entries.iter().find(|(_, names)| names.contains(&key.as_str()));
        let names = names.map_or(key.clone(), |(_, names)| names.join(" "));
        match chosen.is_empty() {
            true => lines.push(None),
            false => lines.extend(chosen.iter().map(|address| Some(line(&address.to_string(), &names)))),
        }
    }
    lines
}

fn all_hosts(keys: &[String], fits: fn(&IpAddr) -> bool) -> Vec<Option<String>> {
    if keys.is_empty() {
        return hosts(keys);
    }
    let mut lines = Vec::new();
    for key in keys {
        let found: Vec<IpAddr> = wire::addresses(key).into_iter().filter(fits).collect();
        if found.is_empty() {
            lines.push(None);
        }
        for (at, address) in found.iter().enumerate() {
            let address = address.to_string();
            let name = if at == 0 { key.as_str() } else { "" };
            lines.push(Some(line(&address, &format!("STREAM {name}"))));
            lines.push(Some(line(&address, "DGRAM  ")));
            lines.push(Some(line(&address, "RAW    ")));
        }
    }
    lines
}

fn services(keys: &[String]) -> Vec<Option<String>> {
    let all = services::all();
    let show = |service: &services::Service| {
        let place = format!("{}/{}", service.port, service.protocol);
        let aliases: String = service.aliases.iter().map(|alias| format!(" {alias}")).collect();
        format!("{} {place}{aliases}", toolkit::pad::after(&service.name, ' ', 21))
    };
    if keys.is_empty() {
        return all.iter().map(|service| Some(show(service))).collect();
    }
    let find = |key: &String| {
        let (name, protocol) =
            key.split_once('/').map_or((key.as_str(), None), |(name, kind)| (name, Some(kind)));
        all.iter().find(|service| {
            let named = service.name == name || service.aliases.iter().any(|alias| alias == name);
            let numbered = name.parse() == Ok(service.port);
            (named || numbered) && protocol.is_none_or(|protocol| protocol == service.protocol)
        })
    };
    keys.iter().map(|key| find(key).map(show)).collect()
}
