//! `ping`, which cannot work: there is no ICMP in a sandbox.

pub fn main(arguments: toolkit::Arguments) -> i32 {
    if let Some(code) = toolkit::args::answer_help(
        "ping",
        "Usage: ping DESTINATION\nICMP does not exist in this sandbox: ping says so and exits with 2.\n",
        &toolkit::args::bytes_of(arguments),
    ) {
        return code;
    }
    toolkit::complain("ping", "ICMP does not exist in this sandbox; try curl or nc -zv HOST PORT instead");
    2
}
