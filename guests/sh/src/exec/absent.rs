//! Well-known programs that a sandbox does not have, and what to do instead: the line after "command not found".

/// Names, separated by blanks, and the advice for all of them. An advice names only what every sandbox has, or what its
/// host can always do: mount files and add commands.
const ABSENT: [(&str, &str); 23] = [
    (
        "apt apt-get aptitude dpkg yum dnf rpm apk pacman zypper brew snap flatpak nix port emerge",
        "packages cannot be installed; a program built for wasm32-wasip1 can be run from any executable file",
    ),
    (
        "pipx uv poetry conda mamba easy_install",
        "pip installs packages in pure Python: from wheels, or from an index if the host grants it; numpy and pandas are there",
    ),
    ("npm npx yarn pnpm bun deno gem bundle cargo rustup composer", "packages cannot be downloaded"),
    (
        "docker podman docker-compose nerdctl kubectl helm minikube vagrant qemu-system-x86_64 virsh lxc",
        "containers and virtual machines cannot run inside the sandbox",
    ),
    (
        "sudo su doas pkexec runuser",
        "there is only one user, who needs no other rights; run the command without it",
    ),
    (
        "ssh scp sftp ssh-keygen ssh-add rsync ftp telnet mosh",
        "curl, wget, nc and git reach what the host grants of the network; to copy files, use cp and tar",
    ),
    ("http aria2c ncat socat nmap", "curl, wget and nc are available"),
    (
        "traceroute whois ip ifconfig route iptables nft tcpdump arp",
        "there are no network interfaces to see or change; ss, host and getent are available",
    ),
    ("hg svn cvs gh glab", "git, diff and patch are available"),
    (
        "cmake ninja meson gcc cc g++ c++ clang clang++ ld as gdb lldb valgrind autoconf automake \
         pkg-config rustc go javac java kotlin scala mvn gradle dotnet swift zig ghc",
        "there are no compilers; make is available, and the host can provide a compiler as a command",
    ),
    (
        "python2 ipython nodejs perl ruby php lua luajit Rscript julia tclsh",
        "python3, node, awk, sed, jq and the shell are available",
    ),
    (
        "systemctl service journalctl init telinit shutdown reboot halt poweroff crontab at batch loginctl",
        "there are no services and no schedule; start a process in the background with &",
    ),
    (
        "mount umount losetup mkfs fdisk parted lsblk blkid fsck swapon chroot unshare nsenter modprobe lsmod \
         insmod dmesg sysctl",
        "file systems and the kernel cannot be changed from inside; the host mounts directories",
    ),
    ("vim nvim emacs pico micro code", "edit files with vi or nano, or change them with ed, sed -i or patch"),
    (
        "7z 7za 7zr p7zip rar unrar cpio ar lha arj lzop lz4",
        "tar, zip, unzip, gzip, bzip2, xz and zstd are available",
    ),
    ("xmllint xmlstarlet xsltproc tidy pandoc", "python3 has xml.etree.ElementTree and html.parser"),
    ("gpg gpg2 pass age ssh-keyscan certbot", "there are no keys; sha256sum and openssl dgst are available"),
    (
        "expect unbuffer empty autoexpect",
        "there is one terminal; subprocess in python3 talks to a program through pipes",
    ),
    ("flock lockfile", "mkdir DIRECTORY succeeds for one caller only, so a directory can serve as a lock"),
    ("tmux screen byobu zellij", "there is one terminal; start a process in the background with &"),
    ("man info apropos whatis tldr", "run COMMAND --help, or help NAME for what the shell has built in"),
    (
        "top htop btop atop iotop vmstat iostat lsof fuser strace ltrace perf pstree",
        "ps, pgrep, kill, free and df are available",
    ),
    (
        "useradd userdel usermod groupadd passwd adduser chpasswd visudo",
        "there is only one user, and no other can be created",
    ),
];

/// The line that says what to do without a program, if it is a well-known one.
pub fn advice(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (_, advice) = ABSENT.iter().find(|(names, _)| names.split_whitespace().any(|known| known == name))?;
    Some(format!("{name} is not available: {advice}\n"))
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
                "sudo is not available: there is only one user, who needs no other rights; run the command without it\n"
            )
        );
        assert_eq!(advice(b"nosuchcommand"), None);
        assert_eq!(advice(b""), None);
    }
}
