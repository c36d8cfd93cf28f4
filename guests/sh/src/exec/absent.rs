//! Well-known programs that a sandbox does not have, and what to do instead: the line after "command not found".

/// Names, apart by blanks, and the advice for all of them.
const ABSENT: [(&str, &str); 17] = [
    (
        "apt apt-get aptitude dpkg yum dnf rpm apk pacman zypper brew snap flatpak nix port emerge",
        "nothing can be installed here; a program built for wasm32-wasip1 runs from any file with its x bit set, \
         and the host can add native ones",
    ),
    (
        "pip pip3 pipx uv poetry conda mamba npm npx yarn pnpm bun deno gem bundle cargo rustup composer",
        "packages cannot be fetched here; the host can mount them or add the native program",
    ),
    (
        "docker podman docker-compose nerdctl kubectl helm minikube vagrant qemu-system-x86_64 virsh lxc",
        "this is a sandbox itself: it runs commands, not containers or machines",
    ),
    ("sudo su doas pkexec runuser", "there is one user here, who may do what there is to do: leave it out"),
    (
        "ssh scp sftp ssh-keygen ssh-add rsync ftp telnet mosh",
        "there is no network to other machines; the host moves files in and out, or mounts them",
    ),
    (
        "curl wget http aria2c nc ncat netcat socat nmap",
        "there are no sockets here; the host can grant network access or add the native program",
    ),
    (
        "ping traceroute dig nslookup host whois ip ifconfig netstat ss route iptables nft tcpdump arp",
        "there are no network interfaces here",
    ),
    ("git hg svn gh", "the host can add the native program; diff and patch are here"),
    (
        "make cmake ninja meson gcc cc g++ c++ clang clang++ ld as gdb lldb valgrind autoconf automake \
         pkg-config rustc go javac java kotlin scala mvn gradle dotnet swift zig ghc",
        "there are no compilers or build tools here; the host can add native ones",
    ),
    (
        "python python3 python2 ipython node nodejs perl ruby php lua luajit Rscript julia tclsh",
        "use the shell, awk, sed and the other tools, or have the host add the native program",
    ),
    (
        "systemctl service journalctl init telinit shutdown reboot halt poweroff crontab at batch loginctl",
        "no services run here; start a process in the background with &",
    ),
    (
        "mount umount losetup mkfs fdisk parted lsblk blkid fsck swapon chroot unshare nsenter modprobe lsmod \
         insmod dmesg sysctl",
        "the kernel is the sandbox's own; the host mounts directories",
    ),
    (
        "vim vi nvim nano emacs ed ex pico micro code",
        "write files with cat and a here document, change them with sed -i or patch",
    ),
    ("tmux screen byobu zellij", "there is one terminal here; start a process in the background with &"),
    (
        "man info apropos whatis tldr",
        "every tool says what it does with --help, the shell's own with help NAME",
    ),
    (
        "top htop btop atop iotop vmstat iostat lsof fuser strace ltrace perf pstree",
        "ps, pgrep, kill, free and df are here",
    ),
    (
        "useradd userdel usermod groupadd passwd adduser chpasswd visudo",
        "there is one user here, called user, and no others can be made",
    ),
];

/// The line that says what to do without a program, if it is a well-known one.
pub fn advice(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (_, advice) = ABSENT.iter().find(|(names, _)| names.split_whitespace().any(|known| known == name))?;
    Some(format!("{name} is not part of this sandbox: {advice}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_in_the_list_once() {
        let mut names: Vec<&str> = ABSENT.iter().flat_map(|(names, _)| names.split_whitespace()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn only_well_known_programs_have_advice() {
        assert_eq!(
            advice(b"sudo").as_deref(),
            Some(
                "sudo is not part of this sandbox: there is one user here, who may do what there is to do: leave it out\n"
            )
        );
        assert_eq!(advice(b"nosuchcommand"), None);
        assert_eq!(advice(b""), None);
    }
}
