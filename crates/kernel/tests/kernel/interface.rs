//! The list of imports is the one that is documented.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::KERNEL;

/// All of preview 1.
const WASI: &str = "args_get args_sizes_get clock_res_get clock_time_get environ_get environ_sizes_get fd_advise \
    fd_allocate fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_fdstat_set_rights fd_filestat_get \
    fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_dir_name fd_prestat_get fd_pwrite fd_read \
    fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write path_create_directory path_filestat_get \
    path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink \
    path_unlink_file poll_oneoff proc_exit proc_raise random_get sched_yield sock_accept sock_recv sock_send \
    sock_shutdown";

/// Names and numbers of parameters.
fn imports(module: &str) -> BTreeMap<String, usize> {
    let of_module = KERNEL.imports().iter().filter(|import| import.module == module);
    of_module.map(|import| (import.name.to_owned(), import.params.len())).collect()
}

#[test]
fn wasi_is_there_whole() {
    let names: Vec<String> = imports("wasi_snapshot_preview1").into_keys().collect();
    let expected: Vec<&str> = WASI.split_whitespace().collect();
    assert_eq!(names, expected);
    assert_eq!(names.len(), 46);
}

/// The rows of docs/abi.md name, in their first column, every call of Wardian's with its parameters, and nothing else.
#[test]
fn our_own_calls_are_documented() {
    let text = documentation();
    let (_, calls) = text.split_once("## Processes").expect("the calls start there");
    let first_columns = calls.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let signatures = first_columns.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let documented: BTreeMap<String, usize> = signatures
        .filter_map(|signature| {
            let (name, rest) = signature.split_once('(')?;
            let params = rest.split(')').next()?;
            Some((name.to_owned(), params.split(',').filter(|param| !param.is_empty()).count()))
        })
        .collect();
    assert_eq!(documented, imports("wardian"));
}

fn documentation() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/abi.md");
    std::fs::read_to_string(path).expect("docs/abi.md")
}

/// Parameters that say neither how many nor how much: descriptors, pointers, flags, moments. Every other name is a
/// number that a guest can make as large as it likes.
const NO_LENGTHS: &str = "addr advice atime base block buf clock code command cookie data dir disposition entry events family \
    fd fdflags fds flags flush from from_dir gid group how inheriting iovs kind left level limits lookup mask min mode mtime \
    name need new offset oflags old operation option out out_count out_flags out_size path pid precision preopens protocol \
    ptr range rights session signal status subscriptions target to to_dir uid value whence which word";

fn in_backticks(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// Whether a parameter with this name is a count or a length.
pub fn is_length(parameter: &str) -> bool {
    !NO_LENGTHS.split_whitespace().any(|name| name == parameter)
}

/// The calls and parameters that docs/abi.md has a cap for.
pub fn documented_caps() -> BTreeSet<(String, String)> {
    let text = documentation();
    let (_, caps) = text.split_once("\n## Caps\n").expect("the caps have a section");
    let mut documented = BTreeSet::new();
    for row in caps.lines().take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        if let [calls, parameters, cap, _] = cells[..]
            && cap.contains(|c: char| c.is_ascii_digit())
        {
            for call in in_backticks(calls) {
                documented.extend(in_backticks(parameters).map(|parameter| (call.clone(), parameter)));
            }
        }
    }
    documented
}

/// docs/abi.md has the cap of every count and length of every call, and of nothing else.
#[test]
fn every_count_and_length_has_a_documented_cap() {
    let lengths: BTreeSet<(String, String)> = KERNEL
        .imports()
        .iter()
        .flat_map(|import| import.names.iter().map(|name| (import.name.to_owned(), (*name).to_owned())))
        .filter(|(_, parameter)| is_length(parameter))
        .collect();
    assert_eq!(documented_caps(), lengths);
}
