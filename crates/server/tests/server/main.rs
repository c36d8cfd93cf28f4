//! The server as a client meets it: lines in, lines out. The process around it is tested with the command.

mod callbacks;
mod e2b;
mod fair;
mod garbage;
mod lines;
mod load;
mod mcp;
mod mounts;
mod named;
mod options;
mod order;
mod outcomes;
mod output_file;
mod ports;
mod processes;
mod proxy;
mod requests;
mod rest;
mod sizes;
mod socket;
mod states;
mod support;
mod table;
mod tokens;
mod transports;
mod watch;
