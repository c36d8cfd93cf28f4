/* What _posixsubprocess.c does in a forked child, done by the kernel's spawn: a child need not be a copy of the interpreter
   first. Included there, after everything it needs; errors reach the parent through the same pipe, in the same words. */
#include <fcntl.h>
#include <sys/stat.h>
#include <wardian.h>

static void
report(int errpipe_write, int error, const char *what)
{
    char text[64];
    int len = snprintf(text, sizeof text, "OSError:%X:%s", (unsigned)error, what);
    (void)_Py_write_noraise(errpipe_write, text, len);
}

static int
is_kept(int fd, const int *fds, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (fds[i] == fd)
            return 1;
    return 0;
}

/* The map of descriptors: standard ones, those to keep although they are marked close-on-exec, those to close although
   they are not. Answers their number. */
static unsigned
plan_descriptors(struct wardian_fd *map, int most, const int standard[3], int close_fds, const int *keep, Py_ssize_t keep_len,
                 int errpipe_write)
{
    unsigned count = 0;
    for (int i = 0; i < 3; i++)
        if (standard[i] >= 0)
            map[count++] = (struct wardian_fd){ i, standard[i] };
    for (int fd = 3; fd < most; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0)
            continue;
        int kept = fd != errpipe_write && is_kept(fd, keep, keep_len);
        if (kept && flags & FD_CLOEXEC)
            map[count++] = (struct wardian_fd){ fd, fd };
        if (!kept && !(flags & FD_CLOEXEC) && close_fds)
            map[count++] = (struct wardian_fd){ fd, -1 };
    }
    return count;
}

/* Tries the candidates in turn, as a child would call execve. A relative one is looked for in the new directory. */
static int
spawn_first(pid_t *pid, char *const candidates[], char *const argv[], char *const envp[], const char *cwd,
            const struct wardian_fd *map, unsigned count, int group)
{
    int error = ENOENT, telling = 0;
    for (char *const *path = candidates; *path; path++) {
        char joined[PATH_MAX];
        const char *program = *path;
        if (cwd && *program != '/') {
            if (snprintf(joined, sizeof joined, "%s/%s", cwd, program) >= (int)sizeof joined)
                error = ENAMETOOLONG;
            program = joined;
        }
        error = wardian_spawn(pid, program, argv, envp, cwd, map, count, group);
        if (!error)
            return 0;
        if (error != ENOENT && error != ENOTDIR && !telling)
            telling = error;
    }
    return telling ? telling : error;
}

/* What keeps the child from starting before a program is even looked for. */
static int
refusal(uid_t uid, gid_t gid, Py_ssize_t extra_group_size, const char *cwd, const char **what)
{
    struct stat info;
    *what = "";
    if ((uid != (uid_t)-1 && setreuid(uid, uid)) || (gid != (gid_t)-1 && setregid(gid, gid)))
        return errno;
    if (extra_group_size > 0)
        return EPERM;
    *what = "noexec:chdir";
    if (cwd && stat(cwd, &info))
        return errno;
    return cwd && !S_ISDIR(info.st_mode) ? ENOTDIR : 0;
}

static pid_t
spawn_child(char *const exec_array[], char *const argv[], char *const envp[], const char *cwd, const int standard[3],
            int errpipe_write, int close_fds, int restore_signals, int group, uid_t uid, gid_t gid,
            Py_ssize_t extra_group_size, int child_umask, const int *keep, Py_ssize_t keep_len)
{
    /* Those that Python ignores for itself; a child inherits what is ignored. */
    static const int quiet[] = { SIGPIPE, SIGXFSZ };
    struct sigaction was[2], usual = { .sa_handler = SIG_DFL };
    const char *what;
    pid_t pid = 0;
    int most = (int)sysconf(_SC_OPEN_MAX);
    struct wardian_fd *map = PyMem_RawMalloc((most + 3) * sizeof *map);
    if (!map) {
        errno = ENOMEM;
        return -1;
    }
    unsigned count = plan_descriptors(map, most, standard, close_fds, keep, keep_len, errpipe_write);
    int error = refusal(uid, gid, extra_group_size, cwd, &what);
    if (error) {
        report(errpipe_write, error, what);
    }
    else {
        mode_t mask = child_umask >= 0 ? umask(child_umask) : 0;
        for (int i = 0; restore_signals && i < 2; i++)
            sigaction(quiet[i], &usual, &was[i]);
        error = spawn_first(&pid, exec_array, argv, envp ? envp : environ, cwd, map, count, group);
        for (int i = 0; restore_signals && i < 2; i++)
            sigaction(quiet[i], &was[i], NULL);
        if (child_umask >= 0)
            umask(mask);
        if (error)
            report(errpipe_write, error, "");
    }
    PyMem_RawFree(map);
    /* Without a child: who waits for oneself is told that there is none, which subprocess expects. */
    return error ? getpid() : pid;
}
